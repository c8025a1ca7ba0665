// Many deadlines on one timer. A call has several deadlines, and nearly all are cancelled long before they are due. One
// timer that checks all of them costs less than a timer for each. A deadline may fire one tick late.

import type { ListNode } from './collections/linked-list.ts'
import { LinkedList } from './collections/linked-list.ts'

const TICK_MS = 50

export class Deadlines {
  readonly #nowMs: () => number
  readonly #pending = new LinkedList<Deadline>()
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
    deadline.node = this.#pending.add(deadline)
    this.#timer ??= setInterval(() => this.fireDue(), TICK_MS)
    return deadline
  }

  remove(deadline: Deadline): void {
    if (deadline.node !== undefined) this.#pending.remove(deadline.node)
    deadline.node = undefined
  }

  /** Fires all deadlines that are due. Tests with a clock of their own call it directly. */
  fireDue(): void {
    const nowMs = this.#nowMs()
    for (const deadline of this.#pending) {
      if (deadline.node === undefined || deadline.dueMs > nowMs) continue // a callback may have cancelled it
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
  node: ListNode<Deadline> | undefined

  constructor(deadlines: Deadlines, dueMs: number, onLate: () => void) {
    this.#deadlines = deadlines
    this.dueMs = dueMs
    this.onLate = onLate
  }

  /** Moves the deadline to `ms` from now. */
  extend(ms: number): void {
    this.dueMs = this.#deadlines.nowMs() + ms
  }

  cancel(): void {
    this.#deadlines.remove(this)
  }
}
