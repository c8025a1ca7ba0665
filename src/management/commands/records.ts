// Commands that show call records, one call in full, stored bodies, and the statement of an account.

import { idAtMs, textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { DAY_MS, timeText } from '../../base/time.ts'
import { END_USER_CHARS_MAX } from '../../protocols/request/tags.ts'
import type { StatementView } from '../../store/queries/ledger.ts'
import { readStatementCursor } from '../../store/queries/ledger.ts'
import type { TransferView } from '../../store/queries/records.ts'
import type { BodyPart } from '../../store/records/bodies-messages.ts'
import type { RecordFilter, RecordView } from '../../store/records/record-search.ts'
import { formatFullRecord, formatRecord } from '../../store/records/record-text.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator } from '../command.ts'
import {
  parseCallId,
  parseRowLimit,
  parseSwitch,
  parseTextOption,
  parseUsdAmount,
  parseWholeNumber,
  resolveAccount,
  resolveKeyId,
} from '../command-input.ts'
import { OperatorError } from '../operator-error.ts'
import { refText } from '../services/statement-lines.ts'

export function recordCommands(parts: OperatorParts): OperatorCommands {
  return {
    'records': input => listRecords(parts, input),
    'record': async input => await showCall(parts, parseCallId(input.call)),
    'statement': input => listStatement(parts, input),
    'bodies': async input => await showBodies(parts, parseCallId(input.call)),
  }
}

async function listRecords(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const ask = { scope: null, filter: filterOf(parts, input), limit: parseRowLimit(input.limit) }
  const { rows, next } = await parts.queryWorker.query('records', ask)
  return { records: rows.map(shortRecord), next: next === null ? null : textId('req', next) }
}

/** The filter of a search, an export or a deletion. */
export function filterOf(parts: OperatorParts, input: CommandInput): RecordFilter {
  const before = input.before === undefined ? undefined : parseCallId(input.before)
  const day = input.day === undefined ? undefined : dayOf(input.day)
  const dayEnd = day === undefined ? undefined : idAtMs(day + DAY_MS)
  return {
    accountId: input.account === undefined ? undefined : Number(resolveAccount(parts, input.account).id),
    keyId: input.key === undefined ? undefined : resolveKeyId(parts, input.key),
    endUser: parseTextOption(input.user, '--user', END_USER_CHARS_MAX),
    outcome: parseTextOption(input.outcome, '--outcome'),
    error: parseTextOption(input.error, '--error'),
    channel: parseTextOption(input.channel, '--channel'),
    provider: parseTextOption(input.provider, '--provider'),
    status: input.status === undefined ? undefined : parseWholeNumber(input.status, '--status', { max: 599 }),
    streamed: parseSwitch(input.streamed, '--streamed'),
    costMin: input['min-cost'] === undefined ? undefined : String(parseUsdAmount(input['min-cost'], '--min-cost')),
    costMax: input['max-cost'] === undefined ? undefined : String(parseUsdAmount(input['max-cost'], '--max-cost')),
    model: input.model === undefined ? undefined : modelOf(String(input.model)),
    from: day === undefined ? timeIdOf(input.since, '--since') : idAtMs(day),
    before: leastOf(before, dayEnd, timeIdOf(input.until, '--until')),
  }
}

const leastOf = (...ids: readonly (number | undefined)[]): number | undefined => {
  const told = ids.filter(id => id !== undefined)
  return told.length === 0 ? undefined : Math.min(...told)
}

function timeIdOf(given: unknown, name: string): number | undefined {
  if (given === undefined) return undefined
  const text = String(given)
  const ms = /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) throw new OperatorError(`${name} must be a time such as 2026-03-31 or 2026-03-31T12:30:00Z.`)
  return idAtMs(ms)
}

/** `<provider>/<model>`, as callers write it. */
function modelOf(text: string): NonNullable<RecordFilter['model']> {
  const slash = text.indexOf('/')
  if (slash < 1) throw new OperatorError('--model must have the form <provider>/<model>.')
  return { provider: text.slice(0, slash), name: text.slice(slash + 1) }
}

function dayOf(given: unknown): number {
  const text = String(given)
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  // Date.parse accepts days that a month does not have, such as February 31.
  if (Number.isNaN(ms) || timeText(ms).slice(0, 10) !== text) {
    throw new OperatorError('--day must be a day such as 2026-03-31 (UTC).')
  }
  return ms
}

function shortRecord(row: RecordView): CommandAnswer {
  const { id, time, account, key, model, status, outcome, inputTokens, outputTokens, cost } = formatRecord(row, true)
  return {
    time,
    call: id,
    account,
    key,
    model,
    status,
    outcome,
    input: inputTokens,
    output: outputTokens,
    cost,
    ms: row.durationMs,
    loss: row.loss,
  }
}

async function showCall({ queryWorker }: OperatorParts, callId: number): Promise<CommandAnswer> {
  const found = await queryWorker.query('record', { callId, scope: null })
  if (found === null)
    throw new OperatorError('There is no record of this call: it is still running, or it does not exist.')
  const { record, transfers } = found
  const { dialect, channel, streamed, error, asked, rule, usageSource, held, shortfall } = formatFullRecord(
    record,
    true,
  )
  return {
    ...shortRecord(record),
    dialect,
    channel,
    streamed,
    error,
    asked,
    rule,
    usageSource,
    cacheRead: record.cacheReadTokens,
    cacheWrite: record.cacheWriteTokens,
    reasoning: record.reasoningTokens,
    held,
    shortfall,
    priceVersion: record.priceVersion,
    firstMs: record.firstMs,
    endUser: record.endUser,
    tags: record.tags,
    cameHash: record.cameHash,
    wentHash: record.wentHash,
    lines: record.lines,
    attempts: record.attempts,
    why: record.why,
    timings: record.timings,
    transfers: transfers.map(line => shortTransfer(line, record.accountId)),
  }
}

/** Reading bodies leaves a row in the audit log. */
async function showBodies({ bodies, queryWorker, writer }: OperatorParts, callId: number): Promise<CommandAnswer> {
  const kept = await bodies.read(callId)
  if (kept === undefined) throw new OperatorError('No bodies are stored for this call.')
  const found = await queryWorker.query('record', { callId, scope: null })
  await writer.run('noteBodiesSeen', { callId, accountId: found?.record.accountId ?? 0 }, byOperator)
  return { request: bodyText(kept.request), answer: bodyText(kept.answer) }
}

const bodyText = ({ bytes, truncated }: BodyPart): string =>
  Buffer.from(bytes).toString('utf8') + (truncated ? '\n[cut here]' : '')

async function listStatement(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const accountId = Number(resolveAccount(parts, input.account).id)
  const after = input.next === undefined ? undefined : String(input.next)
  if (after !== undefined && readStatementCursor(after) === undefined) {
    throw new OperatorError('--next must be the cursor that the previous page printed after "more rows from".')
  }
  const told = await parts.queryWorker.query('statement', {
    accountId,
    scope: null,
    limit: parseRowLimit(input.limit),
    after,
  })
  return { transfers: told!.lines.map(shortLine), next: told!.next }
}

const shortLine = ({ amount, balance, ...line }: StatementView): CommandAnswer => ({
  time: timeText(line.madeMs),
  kind: line.kind.replace('_', '-'),
  amount: signed(amount),
  balance: usdText(balance),
  with: textId('acc', line.otherId),
  ref: refText(line.kind, line.ref),
  reference: line.reference,
  author: line.author,
})

function shortTransfer(line: TransferView, accountId: number): CommandAnswer {
  const receives = line.credit === accountId
  return {
    time: timeText(line.madeMs),
    kind: line.kind.replace('_', '-'),
    amount: signed(receives ? line.amount : `-${line.amount}`),
    with: textId('acc', receives ? line.debit : line.credit),
    ref: refText(line.kind, line.ref),
    reference: line.reference,
    author: line.author,
  }
}

/** Incoming money has a plus sign. */
const signed = (digits: string): string => `${digits.startsWith('-') ? '' : '+'}${usdText(digits)}`
