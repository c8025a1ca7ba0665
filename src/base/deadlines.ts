// Many deadlines on one timer. A call has several, nearly all of which are lifted long before they are due, and a
// timer for each costs more than a look at all of them every so often. A deadline may be late by one tick.

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

  /** Calls `onLate` once, unless the deadline is lifted before it is due. */
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

  /** The work, or a rejection with what `late` makes when it takes too long. The work itself goes on. */
  within<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const deadline = this.after(ms, () => reject(late()))
    work.then(resolve, reject)
    return promise.finally(() => deadline.lift())
  }

  /** Also called by a clock of its own. */
  look(): void {
    const nowMs = this.#nowMs()
    for (const deadline of this.#pending) {
      if (deadline.place === undefined || deadline.dueMs > nowMs) continue // one may lift the next
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
  /** Where it waits; undefined once it is lifted or was late. */
  place: Place<Deadline> | undefined

  constructor(deadlines: Deadlines, dueMs: number, onLate: () => void) {
    this.#deadlines = deadlines
    this.dueMs = dueMs
    this.onLate = onLate
  }

  /** From now on, this long. */
  extend(ms: number): void {
    this.dueMs = this.#deadlines.nowMs() + ms
  }

  lift(): void {
    this.#deadlines.remove(this)
  }
}
