// The headers of a call's answer: what the stages did, how much the caller may still call, when to come again.

import { bounds } from '../base/bounds.ts'
import type { Refusal } from '../base/errors.ts'
import { errorRows } from '../base/errors.ts'
import type { Quota } from '../limits/gcra.ts'
import type { Exchange } from './exchange.ts'
import { lossesOf } from './exchange.ts'

/** The head of every answer of a call. */
export function headersOf(exchange: Exchange, contentType: string): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': contentType,
    'x-request-id': exchange.requestId,
    'request-id': exchange.requestId,
  }
  if (exchange.permit !== undefined) Object.assign(headers, quotaHeaders(exchange.permit.quota))
  if (exchange.attempts.length > 0) headers['X-Weir-Attempts'] = String(exchange.attempts.length)
  if (exchange.hold?.cap !== undefined) headers['X-Weir-Cap'] = String(exchange.hold.cap)
  const told = lossesOf(exchange)
  const losses = exchange.unkept ? [...told, 'store'] : told
  if (losses.length > 0) headers['X-Weir-Loss'] = losses.join(', ')
  if (exchange.protocol.quiet) exchange.timings.writeFailureTo(headers)
  else exchange.timings.writeTo(headers)
  return headers
}

export function quotaHeaders(quota: Quota): Record<string, string> {
  return {
    'x-ratelimit-limit-requests': String(quota.limit),
    'x-ratelimit-remaining-requests': String(quota.remaining),
    'x-ratelimit-reset-requests': duration(quota.resetMs),
  }
}

/** As OpenAI writes it: `250ms`, `1.5s`, `1m0s`. */
function duration(ms: number): string {
  const whole = Math.ceil(ms)
  if (whole < 1_000) return `${whole}ms`
  if (whole < 60_000) return `${whole / 1_000}s`
  return `${Math.floor(whole / 60_000)}m${Math.ceil((whole % 60_000) / 1_000)}s`
}

/** Statuses after which official SDKs call again by themselves. */
const retriedBySdks = (status: number): boolean => status === 408 || status === 409 || status === 429 || status >= 500

const DEFAULT_RETRY_MS = 1_000

export function errorHeaders(refusal: Refusal, attempts = 0): Record<string, string> {
  const { retry, status: ownStatus } = errorRows[refusal.code]
  const status = refusal.extras.upstream?.status ?? ownStatus
  const headers: Record<string, string> = { ...refusal.extras.headers }
  // We have tried every channel there was: three more tries by the SDK would only triple the load.
  if (retriedBySdks(status) && (!retry || attempts > 1)) headers['x-should-retry'] = 'false'
  if (status === 429 || status === 503 || refusal.extras.retryAfterMs !== undefined) {
    const waitMs = Math.ceil(refusal.extras.retryAfterMs ?? (retry ? DEFAULT_RETRY_MS : Number.MAX_SAFE_INTEGER))
    const boundedMs = Math.min(waitMs, bounds.retryAfterSecondsMax * 1_000)
    headers['retry-after'] = String(Math.ceil(boundedMs / 1_000))
    headers['retry-after-ms'] = String(boundedMs)
  }
  return headers
}
