// Watches one attempt: it is aborted when the call stops, or when what is expected next does not come in time.
// One timer an attempt; signs of life only note the time.

import type { Timings } from './timings.ts'

export class Watch {
  readonly #controller = new AbortController()
  readonly #stop: AbortSignal
  readonly #timings: Timings
  readonly #onStop = (): void => this.abort()
  #timer: ReturnType<typeof setTimeout> | undefined
  #lastSignMs = 0
  late = false

  constructor(stop: AbortSignal, timings: Timings) {
    this.#stop = stop
    this.#timings = timings
    if (stop.aborted) this.#controller.abort()
    else stop.addEventListener('abort', this.#onStop)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Rejects when the attempt is aborted. */
  aborted(): Promise<never> {
    return new Promise((_, reject) => {
      this.signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
    })
  }

  /** From now on a sign of life is expected every so often. */
  expect(withinMs: number): void {
    clearTimeout(this.#timer)
    this.#lastSignMs = this.#timings.nowMs()
    this.#arm(withinMs, withinMs)
  }

  alive(): void {
    this.#lastSignMs = this.#timings.nowMs()
  }

  /** Stops watching; the attempt is over or in safe hands. */
  end(): void {
    clearTimeout(this.#timer)
    this.#stop.removeEventListener('abort', this.#onStop)
  }

  /** Ends the attempt now. */
  abort(): void {
    this.end()
    this.#controller.abort()
  }

  #arm(withinMs: number, waitMs: number): void {
    this.#timer = setTimeout(() => {
      const silentMs = this.#timings.nowMs() - this.#lastSignMs
      if (silentMs + 1 < withinMs) return this.#arm(withinMs, withinMs - silentMs)
      this.late = true
      this.#controller.abort()
    }, waitMs)
  }
}
