// Watches one attempt: aborts it when the call is stopped, or when the upstream is silent for too long.

import type { Deadline, Deadlines } from '../../base/deadlines.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange } from '../exchange.ts'
import { callerLeft, isAbandoned } from '../exchange.ts'

/** How long the end of an upstream's body may take after the model has finished. */
export const tailMs = 2_000

/** The caller disconnected after the model had finished, and only the usage report is missing. */
export const awaitsUsage = ({ attempt: { meter }, lifetime: { stop } }: Exchange): boolean =>
  stop.reason === callerLeft && meter.finished && meter.usage === undefined

const attemptOver = new Error('the attempt is over')

export class Watchdog {
  readonly stop = new Stop<Error>()
  readonly #exchange: Exchange
  readonly #deadlines: Deadlines
  readonly #deadline: Deadline
  readonly #onStop = (): void => (awaitsUsage(this.#exchange) ? this.expect(tailMs) : this.abort())
  #intervalMs: number
  /** How long the watch has waited at most since the last sign of life. */
  #waitMs: number
  #end: Deadline | undefined
  #heartbeat: Deadline | undefined
  readonly #onLate = (): void => {
    this.isLate = true
    this.abort()
  }
  isLate = false

  constructor(exchange: Exchange, deadlines: Deadlines, intervalMs: number) {
    this.#exchange = exchange
    this.#deadlines = deadlines
    this.#intervalMs = this.#waitMs = intervalMs
    this.#deadline = deadlines.after(intervalMs, this.#onLate)
    exchange.lifetime.stop.onStop(this.#onStop)
  }

  /** Sets the latest end of the attempt, however active it is. */
  endWithin(ms: number): void {
    this.#end = this.#deadlines.after(ms, this.#onLate)
  }

  /** From now on the upstream must send something this often. */
  expect(intervalMs: number): void {
    this.#intervalMs = intervalMs
    this.alive()
  }

  alive(): void {
    this.#wait(this.#intervalMs)
  }

  /** The model seems to have finished, so that only the end of the body is missing. */
  expectEnd(): void {
    this.#wait(tailMs)
  }

  #wait(ms: number): void {
    this.#waitMs = ms
    this.#deadline.extend(ms)
  }

  /** Expects nothing until the next sign of life. */
  pause(): void {
    this.#deadline.extend(Number.POSITIVE_INFINITY)
  }

  /** Calls `notify` each time that the upstream was silent for this long; never while the watch is paused. */
  onSilence(everyMs: number, notify: () => void): void {
    const listen = (ms: number): void => {
      this.#heartbeat = this.#deadlines.after(ms, () => {
        const silentMs = this.#deadlines.nowMs() - (this.#deadline.dueMs - this.#waitMs)
        const isSilent = silentMs >= everyMs
        if (isSilent) notify()
        listen(isSilent ? everyMs : everyMs - Math.max(silentMs, 0))
      })
    }
    listen(everyMs)
  }

  /** Ends the reports of `onSilence`. */
  stopReports(): void {
    this.#heartbeat?.cancel()
  }

  /** Stops watching: the attempt is over, or somebody else watches it. */
  end(): void {
    this.stopReports()
    this.#deadline.cancel()
    this.#end?.cancel()
    this.#exchange.lifetime.stop.removeListener(this.#onStop)
  }

  /** Ends the attempt now, and also its call if no caller waits for another attempt. */
  abort(): void {
    this.end()
    this.stop.stop(attemptOver)
    if (isAbandoned(this.#exchange)) this.#exchange.lifetime.stop.stop(callerLeft)
  }
}
