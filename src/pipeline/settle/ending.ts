// Decides how a call ended, from the error that was thrown or the reason why the call was stopped.

import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Outcome } from '../../billing/who-pays.ts'
import { blamesRequest } from '../../routing/attempts.ts'
import type { AnswerCut, CallEnding, Exchange } from '../exchange.ts'
import { callerLeft, cutOf, isAbandoned } from '../exchange.ts'

/** Only in records: the caller was gone and got no status. */
const LEFT_STATUS = 499

const outcomes: Partial<Record<ErrorCode, Outcome>> = {
  gateway_fault: 'gateway_fault',
  settle_failed: 'gateway_fault',
  storage_away: 'gateway_fault',
  storage_full: 'gateway_fault',
  upstream_failed: 'upstream_failed',
  upstream_unusable: 'upstream_failed',
  upstream_rate_limited: 'upstream_failed',
  upstream_overloaded: 'upstream_failed',
  upstream_too_slow: 'upstream_failed',
  answer_too_large: 'over_bound',
}

/** The outcome of a refusal, where the caller is still connected and nothing was stopped. */
export const outcomeOf = ({ code, extras }: Pick<Refusal, 'code' | 'extras'>): Outcome =>
  extras.outcome ?? outcomes[code] ?? 'refused'

/** The caller's refusal: why the call was stopped, else what was thrown. Anything unexpected is a gateway fault. */
export function refusalOf(exchange: Exchange, fault: unknown): Refusal {
  const stopped = exchange.lifetime.stop.reason?.refusal
  if (stopped !== undefined) return stopped
  return fault instanceof Refusal ? fault : new Refusal('gateway_fault', describeFault(fault))
}

const callerLeftEnding: CallEnding = { outcome: 'client_left', status: LEFT_STATUS }
const completed: CallEnding = { outcome: 'completed', status: 200 }

/** The bytes passed unchanged, and they say that the upstream failed in the middle. */
const failedInside: CallEnding = { outcome: 'upstream_failed', status: 200, error: 'upstream_failed' }

/** The same for an error that blames the request: the caller has the answer up to that point. */
const refusedInside: CallEnding = { outcome: 'refused', status: 200, error: 'upstream_failed', contentDelivered: true }

/** The ending of a complete answer, whether or not the caller is still connected. */
export function completeEnding(exchange: Exchange): CallEnding {
  const cut = cutOf(exchange)
  if (cut !== undefined) return cutEnding(cut)
  if (isAbandoned(exchange)) return callerLeftEnding
  const { failed, failure } = exchange.attempt.meter
  if (failed === undefined) return completed
  return failure !== undefined && blamesRequest(failure) ? refusedInside : failedInside
}

/** The caller got the answer up to the point where the gateway stopped it. */
export const cutEnding = ({ outcome, refusal }: AnswerCut): CallEnding => ({
  outcome,
  status: 200,
  error: refusal.code,
  contentDelivered: true,
})

/** `status` is the status that the caller got. */
export function endingOf(exchange: Exchange, refusal: Refusal, status: number): CallEnding {
  const { reason } = exchange.lifetime.stop
  if (reason === callerLeft) return callerLeftEnding
  return { outcome: reason?.outcome ?? outcomeOf(refusal), status, error: refusal.code }
}

/** Refusals are normal and logged for debugging only; anything else is a fault of the gateway. */
export function logFault(log: Log, exchange: Exchange, fault: unknown): void {
  // The address takes some work to find and is rarely written, so it is computed only then.
  const address = { toJSON: () => exchange.lifetime.address() }
  const fields = { request: exchange.requestId, address, fault: describeFault(fault) }
  if (exchange.lifetime.stop.reason === callerLeft || fault instanceof Refusal) log.debug('call refused', fields)
  else log.error('call failed', { ...fields, stack: fault instanceof Error ? fault.stack : undefined })
}
