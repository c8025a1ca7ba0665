// How a call ended, from what was thrown or why it was stopped: the one place that decides it.

import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Outcome } from '../../billing/who-pays.ts'
import { blamesRequest } from '../../routing/attempts.ts'
import type { Ending, Exchange } from '../exchange.ts'
import { callerLeft, isForNobody } from '../exchange.ts'

/** In records only: nobody was there to receive it. */
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

/** What a refusal means for the bill, where nobody left and nothing was cut. */
export const outcomeOf = ({ code, extras }: Pick<Refusal, 'code' | 'extras'>): Outcome =>
  extras.ending ?? outcomes[code] ?? 'refused'

/** What the caller is told: why the call was stopped, else what was thrown; our fault, if we did not mean it. */
export function refusalOf(exchange: Exchange, fault: unknown): Refusal {
  const stopped = exchange.stop.reason?.refusal
  if (stopped !== undefined) return stopped
  return fault instanceof Refusal ? fault : new Refusal('gateway_fault', describeFault(fault))
}

const leftEnding: Ending = { outcome: 'client_left', status: LEFT_STATUS }
const completed: Ending = { outcome: 'completed', status: 200 }

/** The bytes passed as they came, and in them the upstream says that it failed in the middle. */
const failedInside: Ending = { outcome: 'upstream_failed', status: 200, error: 'upstream_failed' }

/** The same, of an error that blames the request: the caller has the answer up to it. */
const refusedInside: Ending = { outcome: 'refused', status: 200, error: 'upstream_failed', shown: true }

/** Of an answer that is whole, whether or not somebody is still there to receive it. */
export function wholeEnding(exchange: Exchange): Ending {
  if (isForNobody(exchange)) return leftEnding
  const { failed, failure } = exchange.meter
  if (failed === undefined) return completed
  return failure !== undefined && blamesRequest(failure) ? refusedInside : failedInside
}

/** `status` is the one that was sent. */
export function endingOf(exchange: Exchange, refusal: Refusal, status: number): Ending {
  const { reason } = exchange.stop
  if (reason === callerLeft) return leftEnding
  return { outcome: reason?.outcome ?? outcomeOf(refusal), status, error: refusal.code }
}

/** A refusal is an ordinary day; anything else is ours to mend. */
export function logFault(log: Log, exchange: Exchange, fault: unknown): void {
  // Where the caller is costs something to find out, and is mostly not written.
  const address = { toJSON: () => exchange.address() }
  const fields = { request: exchange.requestId, address, fault: describeFault(fault) }
  if (exchange.stop.reason === callerLeft || fault instanceof Refusal) log.debug('call refused', fields)
  else log.error('call failed', { ...fields, stack: fault instanceof Error ? fault.stack : undefined })
}
