// Converts a record into the form for people: ids as text, money in US dollars, times as dates; and into a line of an
// export file. Channels, attempts and routing reasons are shown to staff only.

import { msOfId, textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import type { ExportFormat } from '../../base/text/export-lines.ts'
import { csvLine, jsonLine } from '../../base/text/export-lines.ts'
import { timeText } from '../../base/time.ts'
import type { FullRecord, RecordView } from './record-search.ts'

export function formatRecord(record: RecordView, staff: boolean) {
  const { callId, keyId, accountId, provider, model, channel, cost, shortfall, loss, ...rest } = record
  return {
    id: textId('req', callId),
    time: timeText(msOfId(callId)),
    account: textId('acc', accountId),
    key: textId('key', keyId),
    model: model === null ? null : `${provider}/${model}`,
    channel: staff ? channel : null,
    ...rest,
    cost: usdText(cost),
    shortfall: usdText(shortfall),
    loss: loss === null ? [] : loss.split(','),
  }
}

export type FormattedRecord = ReturnType<typeof formatRecord>

export function formatFullRecord(record: FullRecord, staff: boolean) {
  const { requestedModel, rule, usageSource, held, priceVersion, lines, attempts, timings, routing, ...more } = record
  const { tags, requestHash, upstreamHash, ...short } = more
  return {
    ...formatRecord(short, staff),
    requestedModel,
    rule,
    usageSource,
    held: usdText(held),
    priceVersion,
    lines,
    timings,
    tags,
    requestHash,
    upstreamHash,
    attempts: staff ? attempts : null,
    routing: staff ? routing : null,
  }
}

export type FormattedFullRecord = ReturnType<typeof formatFullRecord>

/** The columns of a CSV file, in this order. */
const csvColumns: readonly (keyof FormattedFullRecord)[] = [
  'id',
  'time',
  'account',
  'key',
  'model',
  'channel',
  'dialect',
  'requestedModel',
  'status',
  'outcome',
  'error',
  'streamed',
  'inputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'outputTokens',
  'reasoningTokens',
  'cost',
  'shortfall',
  'held',
  'rule',
  'usageSource',
  'priceVersion',
  'firstContentMs',
  'durationMs',
  'endUser',
  'tags',
  'loss',
  'requestHash',
  'upstreamHash',
  'lines',
  'attempts',
  'timings',
  'routing',
]

export const exportHead = (format: ExportFormat): string => (format === 'csv' ? csvLine(csvColumns) : '')

export const exportLine = (record: FormattedFullRecord, format: ExportFormat): string =>
  format === 'csv' ? csvLine(csvColumns.map(name => record[name])) : jsonLine(record)
