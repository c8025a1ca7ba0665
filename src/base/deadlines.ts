// Many deadlines on one timer. A call has several deadlines, and nearly all are cancelled long before they are due. One
// timer that checks all of them costs less than a timer for each. A deadline may fire one tick late.

import type { Place } from './collections/linked-list.ts'
import { Ring } from './collections/linked-list.ts'

const TICK_MS = 50

export class Deadlines {
  readonly #nowMs: () => number
  readonly #pending = new Ring<Deadline>()
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  get size(): number {
    return this.#pending.size
  }

  nowMs(): number {
    return this.#nowMs()
  }

  /** Calls `onLate` once, unless the deadline is cancelled before it is due. */
  after(ms: number, onLate: () => void): Deadline {
    const deadline = new Deadline(this, this.#nowMs() + ms, onLate)
    deadline.place = this.#pending.add(deadline)
    this.#timer ??= setInterval(() => this.look(), TICK_MS)
    return deadline
  }

  remove(deadline: Deadline): void {
    if (deadline.place !== undefined) this.#pending.remove(deadline.place)
    deadline.place = undefined
  }

  /** Waits for `work`, or rejects with the error of `late` when the time is over. The work itself continues. */
  within<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const deadline = this.after(ms, () => reject(late()))
    work.then(resolve, reject)
    return promise.finally(() => deadline.lift())
  }

  /** Fires all deadlines that are due. Tests with a clock of their own call it directly. */
  look(): void {
    const nowMs = this.#nowMs()
    for (const deadline of this.#pending) {
      if (deadline.place === undefined || deadline.dueMs > nowMs) continue // a callback may have cancelled it
      this.remove(deadline)
      deadline.onLate()
    }
    if (this.#pending.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

export class Deadline {
  readonly #deadlines: Deadlines
  dueMs: number
  readonly onLate: () => void
  /** Its node in the list; undefined once the deadline was cancelled or has fired. */
  place: Place<Deadline> | undefined

  constructor(deadlines: Deadlines, dueMs: number, onLate: () => void) {
    this.#deadlines = deadlines
    this.dueMs = dueMs
    this.onLate = onLate
  }

  /** Moves the deadline to `ms` from now. */
  extend(ms: number): void {
    this.dueMs = this.#deadlines.nowMs() + ms
  }

  lift(): void {
    this.#deadlines.remove(this)
  }
}
