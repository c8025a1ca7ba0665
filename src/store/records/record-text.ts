// Converts a record into the form for people: ids as text, money in US dollars, times as dates; and into a line of an
// export file. Channels, attempts and routing reasons are shown to staff only.

import { msOfId, textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import type { ExportFormat } from '../../base/text/export-lines.ts'
import { csvLine, jsonLine } from '../../base/text/export-lines.ts'
import { timeText } from '../../base/time.ts'
import { readAttempts, readTimeline } from './call-times.ts'
import type { FullRecord, RecordView } from './record-search.ts'

export function formatRecord(record: RecordView, staff: boolean) {
  const { callId, keyId, accountId, provider, model, channel, cost, shortfall, loss, ...rest } = record
  const { accountName, keyName, keySuffix, ...more } = rest
  return {
    id: textId('req', callId),
    time: timeText(msOfId(callId)),
    account: textId('acc', accountId),
    accountName,
    key: textId('key', keyId),
    keyName,
    keySuffix,
    model: model === null ? null : `${provider}/${model}`,
    channel: staff ? channel : null,
    ...more,
    cost: usdText(cost),
    shortfall: usdText(shortfall),
    loss: loss === null ? [] : loss.split(','),
  }
}

export type FormattedRecord = ReturnType<typeof formatRecord>

export function formatFullRecord(record: FullRecord, staff: boolean) {
  const { requestedModel, rule, usageSource, held, priceVersion, lines, attempts, timings, routing, ...more } = record
  const { tags, requestHash, upstreamHash, ...short } = more
  const shown = formatRecord(short, staff)
  return {
    ...shown,
    requestedModel,
    rule,
    usageSource,
    held: usdText(held),
    priceVersion,
    lines: linesOf(lines),
    timeline: readTimeline(timings),
    tags: tagsOf(tags),
    requestHash,
    upstreamHash,
    attempts: staff ? readAttempts(attempts, shown.model) : null,
    routing: staff ? routingOf(routing) : null,
  }
}

type StoredLine = readonly [what: string, count: number, rate: string]

/** What is billed: so many, at this price in US dollars per million. */
const linesOf = (stored: unknown) =>
  Array.isArray(stored) ? (stored as readonly StoredLine[]).map(([what, count, rate]) => ({ what, count, rate })) : []

function tagsOf(stored: unknown): Record<string, string> {
  return typeof stored === 'object' && stored !== null ? (stored as Record<string, string>) : {}
}

/** As the pipeline writes it (`route-reason.ts` there). */
interface StoredRouting {
  readonly candidates?: number
  readonly policy?: string
  readonly by?: string
  readonly affinity?: string
  readonly dropped?: Record<string, number>
  readonly limits?: readonly (readonly [resource: string, span: string, remaining: number, limit: number])[]
  readonly overrides?: string[]
}

function routingOf(stored: unknown) {
  if (typeof stored !== 'object' || stored === null) return null
  const { candidates, policy, by, affinity, dropped, limits, overrides } = stored as StoredRouting
  return {
    candidates: candidates ?? null,
    policy: policy ?? null,
    by: by ?? null,
    affinity: affinity ?? null,
    dropped: dropped ?? {},
    limits: (limits ?? []).map(([resource, span, remaining, limit]) => ({
      resource,
      span: span === '' ? null : span,
      remaining,
      limit,
    })),
    overrides: overrides ?? [],
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
  'timeline',
  'routing',
  'accountName',
  'keyName',
  'keySuffix',
  'conversation',
]

export const exportHead = (format: ExportFormat): string => (format === 'csv' ? csvLine(csvColumns) : '')

export const exportLine = (record: FormattedFullRecord, format: ExportFormat): string =>
  format === 'csv' ? csvLine(csvColumns.map(name => record[name])) : jsonLine(record)
