// A clock that a slow machine slows down: while this process does not get the processor, or is busy with one thing, hardly
// any time passes. The gateway and its upstream are in this process, so their deadlines wait for each other.

import type { Clock } from '../../src/base/clock.ts'
import { systemClock } from '../../src/base/clock.ts'

const TICK_MS = 10
/** The time that passes at most from one tick to the next. */
const STEP_MS_MAX = 30

interface Sleeper {
  readonly dueMs: number
  wake(): void
}

export class SteadyClock implements Clock {
  readonly dateMs = systemClock.dateMs
  #tickMs = performance.now()
  #passedMs = 0
  readonly #sleepers = new Set<Sleeper>()
  readonly #timer = setInterval(() => this.#tick(), TICK_MS)

  readonly nowMs = (): number => this.#passedMs + Math.min(performance.now() - this.#tickMs, STEP_MS_MAX)

  /** Resolves after this time. */
  sleep(ms: number): Promise<void> {
    return new Promise(wake => this.#sleepers.add({ dueMs: this.nowMs() + ms, wake }))
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    this.#passedMs = this.nowMs()
    this.#tickMs = performance.now()
    for (const sleeper of this.#sleepers) {
      if (sleeper.dueMs > this.#passedMs) continue
      this.#sleepers.delete(sleeper)
      sleeper.wake()
    }
  }
}
