// Many deadlines on one timer. A call has several, nearly all of which are lifted long before they are due, and a
// timer for each costs more than the look at all of them every so often. A deadline may be late by one tick.

const TICK_MS = 50

export interface Deadline {
  /** From now on, this long. */
  extend(ms: number): void
  lift(): void
}

export class Deadlines {
  readonly #nowMs: () => number
  readonly #pending = new Set<Pending>()
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  get size(): number {
    return this.#pending.size
  }

  /** Calls `onLate` once, unless the deadline is lifted before it is due. */
  after(ms: number, onLate: () => void): Deadline {
    const pending: Pending = { dueMs: this.#nowMs() + ms, onLate }
    this.#pending.add(pending)
    this.#timer ??= setInterval(() => this.#look(), TICK_MS)
    return {
      extend: more => {
        pending.dueMs = this.#nowMs() + more
      },
      lift: () => void this.#pending.delete(pending),
    }
  }

  /** The work, or a rejection with what `late` makes when it takes too long. The work itself goes on. */
  within<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      const deadline = this.after(ms, () => reject(late()))
      work.then(
        value => {
          deadline.lift()
          resolve(value)
        },
        (fault: unknown) => {
          deadline.lift()
          reject(fault)
        },
      )
    })
  }

  #look(): void {
    const nowMs = this.#nowMs()
    for (const pending of this.#pending) {
      if (pending.dueMs > nowMs) continue
      this.#pending.delete(pending)
      pending.onLate()
    }
    if (this.#pending.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

interface Pending {
  dueMs: number
  readonly onLate: () => void
}
