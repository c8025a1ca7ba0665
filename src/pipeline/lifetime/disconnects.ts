// Handles callers that disconnect, or lose their key. Normally the call is stopped. It runs on to its end, within bounds,
// in three cases: it has an idempotency key, so that the caller can come back for the answer; the upstream bills the whole
// answer anyway, so that the final report is the right price; or only that report tells what the call costs, because the
// model may have reasoned unseen or has read what the gateway cannot measure. Without a key only the last case counts, and
// of it only the input.

import { bounds } from '../../base/bounds.ts'
import { AccountShares } from '../../base/collections/account-shares.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import { callerLeft } from '../exchange.ts'
import { awaitsReport, readsUnknownInput } from '../settle/hidden-reasoning.ts'

export class Disconnects {
  readonly #deadlines: Deadlines
  readonly #slots = new AccountShares({
    total: bounds.callerGoneCallsMax,
    perAccount: bounds.callerGoneCallsOfAccountMax,
  })

  constructor(deadlines: Deadlines) {
    this.#deadlines = deadlines
  }

  /** May be called more than once. */
  onDisconnect(exchange: Exchange): void {
    const { lifetime } = exchange
    if (lifetime.detached || lifetime.callerGoneDeadline !== undefined) return
    if (this.#endOrRunOn(exchange, mayRunOn(exchange)) === 'runs on') lifetime.callerGone.stop(callerLeft)
  }

  /**
   * A background call is cancelled. One whose answer has begun may have been read by those who follow its events, so it
   * runs on like a call whose caller disconnected. May be called more than once.
   */
  onCancel(exchange: Exchange): void {
    if (exchange.lifetime.callerGoneDeadline !== undefined) return
    this.#endOrRunOn(exchange, exchange.attempt.meter.content && mayRunOn(exchange))
  }

  /**
   * The key of the call ended. If only the report tells what the input costs, the caller is disconnected and the call
   * runs on: otherwise a caller that has read the answer could revoke its own key, and pay for a small part of its files.
   */
  onKeyEnd(exchange: Exchange, reason: StopReason): void {
    const { lifetime } = exchange
    if (!mayRunOn(exchange) || !readsUnknownInput(exchange)) return lifetime.stop.stop(reason)
    if (lifetime.callerGoneDeadline !== undefined) return
    if (this.#endOrRunOn(exchange, true, reason) === 'ends' || lifetime.detached) return
    lifetime.callerGone.stop(reason)
    lifetime.closeConnection()
  }

  #endOrRunOn(exchange: Exchange, isWanted: boolean, reason = callerLeft): 'ends' | 'runs on' {
    const { lifetime } = exchange
    const end = (): void => lifetime.stop.stop(reason)
    lifetime.callerGoneMs ??= exchange.timings.nowMs()
    if (!isWanted || !this.#slots.take(accountOf(exchange))) {
      end()
      return 'ends'
    }
    lifetime.callerGoneDeadline = this.#deadlines.after(bounds.callerGoneMsMax, end)
    return 'runs on'
  }

  /** The call is over. */
  onCallOver(exchange: Exchange): void {
    if (exchange.lifetime.isOver) return
    exchange.lifetime.isOver = true
    if (exchange.lifetime.callerGoneDeadline === undefined) return
    exchange.lifetime.callerGoneDeadline.cancel()
    this.#slots.release(accountOf(exchange))
  }
}

/** A call with a hold has a permit. */
const accountOf = ({ permit }: Exchange): number => permit!.caller.accountId

/** Before the hold nothing was sent upstream, so there is nothing to finish. */
function mayRunOn(exchange: Exchange): boolean {
  const { hold, attempt } = exchange
  const { isOver, detached } = exchange.lifetime
  const { claim } = exchange.options
  const { candidate, meter } = attempt
  if (isOver || hold === undefined) return false
  // A background call that is not stored yet: its caller does not know it.
  if (exchange.call?.state?.background === true && !detached) return false
  if (claim !== undefined) return true
  if (!meter.forwarded || candidate === undefined) return false
  return candidate.model.billsWhenLeft ?? (candidate.provider.can.billsWhenLeft || awaitsReport(exchange))
}
