// Commands about all of the books: audit and backup.

import { isAbsolute } from 'node:path'
import { textId } from '../../base/ids.ts'
import type { AuditReport } from '../../store/ledger-audit/findings.ts'
import type { CommandAnswer, OperatorCommands, OperatorParts } from '../command.ts'
import { OperatorError } from '../operator-error.ts'

export function bookCommands(parts: OperatorParts): OperatorCommands {
  return {
    audit: async () => showAudit(await parts.audit()),
    async backup(input) {
      const folder = String(input.folder ?? '')
      if (!isAbsolute(folder))
        throw new OperatorError('The folder is missing or not absolute. Usage: weir backup <folder>')
      const { audit, ...backup } = await parts.backUp(folder)
      return { ...backup, ...showAudit(audit) }
    },
  }
}

export function showAudit({ findings, ...seen }: AuditReport): CommandAnswer {
  return {
    books: findings.length === 0 ? 'agree' : 'do not agree',
    transfers: seen.transfers,
    records: seen.records,
    accounts: seen.accounts,
    openHolds: seen.holds,
    seconds: Number((seen.tookMs / 1_000).toFixed(2)),
    findings: findings.map(({ check, accountId, text }) => ({
      check,
      account: accountId === null ? null : textId('acc', accountId),
      finding: text,
    })),
  }
}
