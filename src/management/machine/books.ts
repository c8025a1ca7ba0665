// Machine commands about the gateway and all of its books: audit, backup, the state of the process, the first key.

import { isAbsolute } from 'node:path'
import { refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import { parseUsd } from '../../base/money/money.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import type { AuditReport } from '../../store/ledger-audit/findings.ts'
import type { ManagementParts } from '../management-parts.ts'
import { createApiKey } from '../services/keys.ts'
import type { MachineAnswer, MachineCommands, MachineInput } from './command.ts'
import { byOperator } from './command.ts'

export function bookCommands(parts: ManagementParts): MachineCommands {
  return {
    'audit': async () => showAudit(await parts.audit()),
    async 'backup'(input) {
      const folder = String(input.folder ?? '')
      if (!isAbsolute(folder)) {
        throw refusal('field_invalid', 'The folder is missing or not absolute. Usage: weir backup <folder>')
      }
      const { audit, ...backup } = await parts.backUp(folder)
      return { ...backup, ...showAudit(audit) }
    },
    /** The state of a running gateway, for weir doctor. */
    'doctor': async () => ({ state: parts.state() ?? null }),
    'first-key': input => createFirstKey(parts, input),
  }
}

/** One commit creates the key that the very first start prints and notes that it exists, so that it is created once. */
async function createFirstKey(parts: ManagementParts, { credit }: MachineInput): Promise<MachineAnswer> {
  const [id, accountId, creditRef] = [parts.mintId(), parts.mintId(), parts.mintId()]
  const funds = { accountId, existing: false, credit: moneyText(parseUsd(String(credit))!), creditRef }
  const creating = createApiKey(parts, { ...funds, id, name: 'first key', tier: 'standard', qpm: null }, byOperator)
  // Queued in the same tick, so that one commit writes both.
  parts.writer.run('setSetting', { name: 'first_key', value: textId('key', id) }).catch(() => {})
  return { key: (await creating).text }
}

export function showAudit({ findings, ...seen }: AuditReport): MachineAnswer {
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
