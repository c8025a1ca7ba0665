// Watches one attempt: it is aborted when the call stops, or when what is expected next does not come in time.

import type { Deadline, Deadlines } from '../base/deadlines.ts'
import { Stop } from '../base/stop.ts'
import type { Exchange } from './exchange.ts'
import { callerLeft, isForNobody } from './exchange.ts'

/** How long the end of an upstream's body may take after the model said that it is done. */
export const tailMs = 2_000

/** The caller left when the model was done, and only usage is still to come. */
export const owesUsage = ({ stop, meter }: Exchange): boolean =>
  stop.reason === callerLeft && meter.finished && meter.usage === undefined

const over = new Error('the attempt is over')

export class Watch {
  readonly stop = new Stop<Error>()
  readonly #exchange: Exchange
  readonly #deadline: Deadline
  readonly #onStop = (): void => (owesUsage(this.#exchange) ? this.expect(tailMs) : this.abort())
  #withinMs: number
  late = false

  constructor(exchange: Exchange, deadlines: Deadlines, withinMs: number) {
    this.#exchange = exchange
    this.#withinMs = withinMs
    this.#deadline = deadlines.after(withinMs, () => {
      this.late = true
      this.abort()
    })
    exchange.stop.onStop(this.#onStop)
  }

  /** From now on a sign of life is expected this often. */
  expect(withinMs: number): void {
    this.#withinMs = withinMs
    this.alive()
  }

  alive(): void {
    this.#deadline.extend(this.#withinMs)
  }

  /** Nothing is expected until the next sign of life. */
  pause(): void {
    this.#deadline.extend(Number.POSITIVE_INFINITY)
  }

  /** Stops watching; the attempt is over or in safe hands. */
  end(): void {
    this.#deadline.lift()
    this.#exchange.stop.forget(this.#onStop)
  }

  /** Ends the attempt now, and its call with it where nobody waits for another one. */
  abort(): void {
    this.end()
    this.stop.stop(over)
    if (isForNobody(this.#exchange)) this.#exchange.stop.stop(callerLeft)
  }
}
