// Watches one attempt: it is aborted when the call stops, or when what is expected next does not come in time.

import type { Deadline, Deadlines } from '../base/deadlines.ts'
import type { Stop } from '../base/stop.ts'

export class Watch {
  readonly #controller = new AbortController()
  readonly #stop: Stop
  readonly #deadline: Deadline
  readonly #abort = (): void => this.abort()
  #withinMs: number
  late = false

  constructor(stop: Stop, deadlines: Deadlines, withinMs: number) {
    this.#stop = stop
    this.#withinMs = withinMs
    this.#deadline = deadlines.after(withinMs, () => {
      this.late = true
      this.abort()
    })
    stop.onStop(this.#abort)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Rejects when the attempt is aborted. */
  aborted(): Promise<never> {
    return new Promise((_, reject) => {
      const tell = (): void => reject(new Error('aborted'))
      if (this.signal.aborted) tell()
      else this.signal.addEventListener('abort', tell, { once: true })
    })
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
    this.#stop.forget(this.#abort)
  }

  /** Ends the attempt now. */
  abort(): void {
    this.end()
    this.#controller.abort()
  }
}
