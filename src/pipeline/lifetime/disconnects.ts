// What it means that a caller left: the call is stopped. It goes on to its end without its caller, within bounds, where
// that is of use: with an idempotency key, so that the caller can come again and find a whole answer; where the
// upstream bills all of it anyway, so that what it reports in the end is what the caller pays; and where the model may
// have thought in secret, which only that report tells.

import { bounds } from '../../base/bounds.ts'
import { Portions } from '../../base/collections/account-shares.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import type { Exchange } from '../exchange.ts'
import { callerLeft } from '../exchange.ts'
import { owesReport } from '../settle/hidden-reasoning.ts'

export class Leaving {
  readonly #deadlines: Deadlines
  readonly #alone = new Portions({ all: bounds.aloneCallsMax, each: bounds.aloneCallsOfAccountMax })

  constructor(deadlines: Deadlines) {
    this.#deadlines = deadlines
  }

  /** May be told more than once. */
  left(exchange: Exchange): void {
    const { stop, alone } = exchange
    if (exchange.detached || exchange.untilAlone !== undefined) return
    exchange.leftMs ??= exchange.timings.nowMs()
    if (!mayGoOn(exchange) || !this.#alone.take(accountOf(exchange))) return stop.stop(callerLeft)
    exchange.untilAlone = this.#deadlines.after(bounds.aloneMsMax, () => stop.stop(callerLeft))
    alone.stop(callerLeft)
  }

  /** The call is over. */
  over(exchange: Exchange): void {
    if (exchange.isOver) return
    exchange.isOver = true
    if (exchange.untilAlone === undefined) return
    exchange.untilAlone.lift()
    this.#alone.giveBack(accountOf(exchange))
  }
}

/** What holds money has been let in for somebody. */
const accountOf = ({ permit }: Exchange): number => permit!.caller.accountId

/** Before its hold nothing has been sent upstream: there is nothing to bring to an end. */
function mayGoOn(exchange: Exchange): boolean {
  const { isOver, hold, claim, meter, route } = exchange
  if (isOver || hold === undefined) return false
  if (claim !== undefined) return true
  if (!meter.forwarded || route === undefined) return false
  return route.model.billsWhenLeft ?? (route.provider.can.billsWhenLeft || owesReport(exchange))
}
