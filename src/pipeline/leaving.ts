// What it means that a caller left: the call is stopped. One with an idempotency key goes on to its end without its
// caller, within bounds, so that the caller can come again and find a whole answer.

import { bounds } from '../base/bounds.ts'
import type { Deadlines } from '../base/deadlines.ts'
import type { Exchange } from './exchange.ts'
import { callerLeft } from './exchange.ts'

export class Leaving {
  readonly #deadlines: Deadlines
  #alone = 0

  constructor(deadlines: Deadlines) {
    this.#deadlines = deadlines
  }

  /** May be told more than once. */
  left(exchange: Exchange): void {
    const { claim, hold, stop, detached } = exchange
    if (detached) return
    if (claim?.untilAlone !== undefined) return
    // Before its hold nothing has been sent upstream: there is nothing to bring to an end.
    if (claim === undefined || hold === undefined || claim.isOver || this.#alone >= bounds.aloneCallsMax) {
      return stop.stop(callerLeft)
    }
    this.#alone++
    claim.untilAlone = this.#deadlines.after(bounds.aloneMsMax, () => stop.stop(callerLeft))
    claim.alone.stop(callerLeft)
  }

  /** The call is over. */
  over({ claim }: Exchange): void {
    if (claim === undefined || claim.isOver) return
    claim.isOver = true
    if (claim.untilAlone === undefined) return
    claim.untilAlone.lift()
    this.#alone--
  }
}
