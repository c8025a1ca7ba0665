// Machine commands about the gateway and all of its books: audit, backup, the state of the process, the first key.

import { isAbsolute } from 'node:path'
import { refusal } from '../../base/errors.ts'
import { forOperator } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import type { AuditReport } from '../../store/ledger-audit/findings.ts'
import type { ManagementParts } from '../management-parts.ts'
import { createApiKey } from '../services/keys.ts'
import type { MachineAnswer, MachineCommands } from './command.ts'
import { byOperator } from './command.ts'

export function bookCommands(parts: ManagementParts): MachineCommands {
  return {
    'audit': async () => showAudit(await parts.audit()),
    async 'backup'(input) {
      const folder = String(input.folder ?? '')
      if (!isAbsolute(folder)) {
        throw refusal(
          'field_invalid',
          forOperator('The folder is missing or not absolute. Usage: weir backup <folder>'),
        )
      }
      const { audit, ...backup } = await parts.backUp(folder)
      return { ...backup, ...showAudit(audit) }
    },
    /** The state of a running gateway, for weir doctor. */
    'doctor': async () => ({ state: (await parts.state()) ?? null }),
    'first-key': () => createFirstKey(parts),
  }
}

/**
 * One commit creates the key that the very first start prints and notes that it exists, so that it is created once. The
 * key is the operator's own: its account is postpaid, because nobody prepays to himself.
 */
async function createFirstKey(parts: ManagementParts): Promise<MachineAnswer> {
  const [id, accountId] = [parts.mintId(), parts.mintId()]
  const key = { id, accountId, existing: false, credit: '0', creditRef: parts.mintId() } as const
  // Queued in the same tick, so that one commit writes all three.
  const writes = [
    createApiKey(parts, { ...key, name: 'first key', tier: 'standard', qpm: null }, byOperator),
    parts.writer.run('setAccount', { id: accountId, kind: 'postpaid' }, byOperator),
    parts.writer.run('setSetting', { name: 'first_key', value: textId('key', id) }),
  ] as const
  const [{ text }] = await Promise.all(writes)
  return { key: text }
}

export function showAudit({ findings, ...seen }: AuditReport): MachineAnswer {
  return {
    books: findings.length === 0 ? 'agree' : 'do not agree',
    transfers: seen.transfers,
    records: seen.records ?? null,
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
