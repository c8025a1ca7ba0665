// Commands that export records as text, slice by slice, and that delete records.

import { idAtMs, parseTextId, textId } from '../../base/ids.ts'
import type { ExportFormat } from '../../base/text/export-lines.ts'
import { exportFormats } from '../../base/text/export-lines.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator, operatorAuthor } from '../command.ts'
import { OperatorError } from '../operator-error.ts'
import { filterOf } from './records.ts'

const ROWS_A_SLICE = 1_000
const DELETIONS_SHOWN_MAX = 50

export function recordFileCommands(parts: OperatorParts): OperatorCommands {
  return {
    'records-export': input => exportSlice(parts, input),
    'records-delete': input => orderDeletion(parts, input),
    'records-deletions': () => listDeletions(parts),
  }
}

async function exportSlice(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const format = String(input.format ?? 'ndjson') as ExportFormat
  if (!exportFormats.includes(format)) throw new OperatorError('--format must be ndjson or csv.')
  const after = input.next === undefined ? undefined : parseTextId('req', String(input.next))
  const asked = { scope: null, filter: filterOf(parts, input), after, limit: ROWS_A_SLICE }
  const { text, rows, next } = await parts.queryWorker.query('exportRecords', {
    ...asked,
    format,
    staff: true,
    packed: null,
  })
  return { text, rows, next: next === null ? null : textId('req', next) }
}

async function orderDeletion(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const { accountId, keyId, endUser, from = 0, before } = filterOf(parts, input)
  const isAll = accountId === undefined && keyId === undefined && endUser === undefined
  if (isAll && before === undefined) {
    throw new OperatorError('Say which records to delete: --account, --key, --user, --until or --day.')
  }
  const end = Math.min(before ?? Number.POSITIVE_INFINITY, idAtMs(parts.dateMs()))
  if (from >= end) throw new OperatorError('--since must be before --until and before now.')
  const rule = { accountId: accountId ?? null, keyId: keyId ?? null, endUser: endUser ?? null, from, before: end }
  const result = await parts.writer.run('orderDeletion', { ...rule, scope: null, author: operatorAuthor }, byOperator)
  if (!('id' in result)) throw new OperatorError('Unknown account, or the key belongs to another account.')
  parts.recordDeleter.sweep().catch(() => {}) // the next regular sweep tries again
  return { deletion: result.id, state: 'ordered: see weir records deletions' }
}

async function listDeletions({ queryWorker }: OperatorParts): Promise<CommandAnswer> {
  const ask = { scope: null, filters: {}, sort: 'id', descending: true, limit: DELETIONS_SHOWN_MAX }
  const { rows } = await queryWorker.query('deletions', ask)
  const deletions = rows.map(({ id, accountId, keyId, ofEndUser, deleted, madeMs, doneMs }) => ({
    deletion: id,
    account: accountId === null ? null : textId('acc', accountId),
    key: keyId === null ? null : textId('key', keyId),
    user: ofEndUser ? 'one' : null,
    deleted,
    ordered: timeText(madeMs),
    done: timeOrNull(doneMs),
  }))
  return { deletions }
}
