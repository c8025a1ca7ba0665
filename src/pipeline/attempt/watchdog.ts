// Watches one attempt: it is aborted when the call stops, or when what is expected next does not come in time.

import type { Deadline, Deadlines } from '../../base/deadlines.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange } from '../exchange.ts'
import { callerLeft, isForNobody } from '../exchange.ts'

/** How long the end of an upstream's body may take after the model said that it is done. */
export const tailMs = 2_000

/** The caller left when the model was done, and only usage is still to come. */
export const owesUsage = ({ stop, meter }: Exchange): boolean =>
  stop.reason === callerLeft && meter.finished && meter.usage === undefined

const over = new Error('the attempt is over')

export class Watch {
  readonly stop = new Stop<Error>()
  readonly #exchange: Exchange
  readonly #deadlines: Deadlines
  readonly #deadline: Deadline
  readonly #onStop = (): void => (owesUsage(this.#exchange) ? this.expect(tailMs) : this.abort())
  #withinMs: number
  #end: Deadline | undefined
  #heart: Deadline | undefined
  readonly #onLate = (): void => {
    this.late = true
    this.abort()
  }
  late = false

  constructor(exchange: Exchange, deadlines: Deadlines, withinMs: number) {
    this.#exchange = exchange
    this.#deadlines = deadlines
    this.#withinMs = withinMs
    this.#deadline = deadlines.after(withinMs, this.#onLate)
    exchange.stop.onStop(this.#onStop)
  }

  /** However lively it is, it is over by then. */
  endWithin(ms: number): void {
    this.#end = this.#deadlines.after(ms, this.#onLate)
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

  /** From now on tells each time that there was no sign of life for this long; never while it is paused. */
  onSilence(everyMs: number, tell: () => void): void {
    const listen = (ms: number): void => {
      this.#heart = this.#deadlines.after(ms, () => {
        const silentMs = this.#deadlines.nowMs() - (this.#deadline.dueMs - this.#withinMs)
        const isSilent = silentMs >= everyMs
        if (isSilent) tell()
        listen(isSilent ? everyMs : everyMs - Math.max(silentMs, 0))
      })
    }
    listen(everyMs)
  }

  /** Silence is no longer told of. */
  hush(): void {
    this.#heart?.lift()
  }

  /** Stops watching; the attempt is over or in safe hands. */
  end(): void {
    this.hush()
    this.#deadline.lift()
    this.#end?.lift()
    this.#exchange.stop.forget(this.#onStop)
  }

  /** Ends the attempt now, and its call with it where nobody waits for another one. */
  abort(): void {
    this.end()
    this.stop.stop(over)
    if (isForNobody(this.#exchange)) this.#exchange.stop.stop(callerLeft)
  }
}
