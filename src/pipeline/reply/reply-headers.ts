// Writes the headers of a call's answer: what the stages did, what is left of the limits, when to retry.

import type { QuotaReport, Refusal } from '../../base/errors.ts'
import { errorRows, RETRY_AFTER_MS_MAX } from '../../base/errors.ts'
import type { ErrorDialect } from '../../protocols/protocol.ts'
import type { Exchange } from '../exchange.ts'
import { capFor, cutOf, lossesOf } from '../exchange.ts'

/** The headers that every answer of a call has. */
export function replyHeaders(exchange: Exchange, contentType: string): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': contentType,
    'x-request-id': exchange.requestId,
    'request-id': exchange.requestId,
  }
  const { permit, protocol, createdMs } = exchange
  if (permit !== undefined) addLimitHeaders(headers, permit.quotas, { dialect: protocol, dateMs: createdMs })
  if (exchange.attempts.length > 0) headers['X-Weir-Attempts'] = String(exchange.attempts.length)
  const { hold, attempt } = exchange
  if (hold?.cap !== undefined) headers['X-Weir-Cap'] = String(capFor(hold, attempt.candidate!))
  const cut = cutOf(exchange)
  if (cut !== undefined) headers['X-Weir-Stop'] = cut.refusal.code
  const codes = lossesOf(exchange)
  exchange.lossesInHead = codes.length
  const losses = exchange.storage.notStored ? [...codes, 'store'] : codes
  if (losses.length > 0) headers['X-Weir-Loss'] = losses.join(', ')
  const { overrides } = attempt
  if (overrides !== undefined && overrides.length > 0) headers['X-Weir-Overrides'] = overrides.join(', ')
  if (exchange.protocol.hidesStages) exchange.timings.writeFailureTo(headers)
  else exchange.timings.writeTo(headers)
  return headers
}

interface QuotaContext {
  readonly dialect: ErrorDialect
  readonly dateMs: number
}

/** What is left of the limits, in OpenAI's headers and in those of the caller's dialect. */
export function addLimitHeaders(
  headers: Record<string, string>,
  quotas: readonly QuotaReport[],
  context: QuotaContext,
): void {
  const { dialect, dateMs } = context
  for (const quota of quotas) {
    const { resource, limit, remaining, resetMs } = quota
    if (resource === 'concurrency') continue
    headers[`x-ratelimit-limit-${resource}`] = String(limit)
    headers[`x-ratelimit-remaining-${resource}`] = String(remaining)
    headers[`x-ratelimit-reset-${resource}`] = duration(resetMs)
    if (dialect.quotaHeaders !== undefined) Object.assign(headers, dialect.quotaHeaders(quota, dateMs))
  }
}

/** OpenAI's format: `250ms`, `1.5s`, `1m0s`, `2h5m0s`. */
function duration(ms: number): string {
  const whole = Math.ceil(ms)
  if (whole < 1_000) return `${whole}ms`
  if (whole < 60_000) return `${whole / 1_000}s`
  const seconds = Math.ceil(whole / 1_000)
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  return `${hours > 0 ? `${hours}h` : ''}${minutes % 60}m${seconds % 60}s`
}

/** Statuses after which official SDKs retry by themselves. */
const retriedBySdks = (status: number): boolean => status === 408 || status === 409 || status === 429 || status >= 500

const DEFAULT_RETRY_MS = 1_000

export function errorHeaders(refusal: Refusal, attempts = 0): Record<string, string> {
  const { retry, status: ownStatus } = errorRows[refusal.code]
  const status = refusal.extras.upstream?.status ?? ownStatus
  const headers: Record<string, string> = { ...refusal.extras.headers }
  // The gateway has tried every channel: three more tries by the SDK would only triple the load. A retry after the
  // longest allowed wait does not help either where a longer wait is needed.
  const isTooLate = (refusal.extras.retryAfterMs ?? 0) > RETRY_AFTER_MS_MAX
  if (retriedBySdks(status) && (!retry || attempts > 1 || isTooLate)) headers['x-should-retry'] = 'false'
  if (status === 429 || status === 503 || refusal.extras.retryAfterMs !== undefined) {
    const waitMs = Math.ceil(refusal.extras.retryAfterMs ?? (retry ? DEFAULT_RETRY_MS : Number.MAX_SAFE_INTEGER))
    const boundedMs = Math.min(waitMs, RETRY_AFTER_MS_MAX)
    headers['retry-after'] = String(Math.ceil(boundedMs / 1_000))
    headers['retry-after-ms'] = String(boundedMs)
  }
  return headers
}
