// Bounds the memory of all answers together. One answer may hold an event of many megabytes, such as an image or the
// result of a tool; a thousand of them at a time would not fit.
//
// Small answers are not counted. When the others exceed the budget, the gateway stops reading their upstreams until
// there is room, except for one answer, so that one can always finish and free its memory. So the memory is bounded by
// the budget plus the largest single answer.

import { bounds } from '../../base/bounds.ts'
import type { Stop } from '../../base/stop.ts'

export class AnswerMemory {
  readonly #bytesMax: number
  /** The largest size of one event. */
  readonly eventBytesMax: number
  readonly #waiting = new Set<WaitingLease>()
  #bytes = 0
  /** The answer that may grow although there is no room. */
  #exempt: AnswerLease | undefined

  constructor(bytesMax: number, eventBytesMax: number = bounds.frameBytesMax) {
    this.#bytesMax = bytesMax
    this.eventBytesMax = eventBytesMax
  }

  /** The bytes of all counted answers. */
  get bytes(): number {
    return this.#bytes
  }

  open(): AnswerLease {
    return new AnswerLease(this)
  }

  // The methods below are called by leases.

  wait(waiting: WaitingLease): void {
    this.#waiting.add(waiting)
  }

  forget(waiting: WaitingLease): void {
    this.#waiting.delete(waiting)
  }

  mayGrow(lease: AnswerLease): boolean {
    if (this.#bytes <= this.#bytesMax) return true
    this.#exempt ??= lease
    return this.#exempt === lease
  }

  change(lease: AnswerLease, more: number): void {
    this.#bytes += more
    if (more >= 0) return
    if (this.#exempt === lease && lease.bytes === 0) this.#exempt = undefined
    for (const waiting of this.#waiting) {
      // Without bytes its answer is over, and would never give the exemption back.
      const isOver = waiting.lease.bytes === 0
      if (!isOver && !this.mayGrow(waiting.lease)) return
      waiting.wake()
    }
  }
}

interface WaitingLease {
  readonly lease: AnswerLease
  wake(): void
}

/** The memory that the answer of one call holds. */
export class AnswerLease {
  readonly #budget: AnswerMemory
  #read = 0
  #heldBack = 0
  #counted = 0

  constructor(budget: AnswerMemory) {
    this.#budget = budget
  }

  /** The largest size of one event, and of everything that is held back. */
  get eventBytesMax(): number {
    return this.#budget.eventBytesMax
  }

  /** The counted bytes of this answer. */
  get bytes(): number {
    return this.#counted
  }

  /** Sets how many bytes were read and are not written yet. */
  read(bytes: number): void {
    this.#read = bytes
    this.#count()
  }

  /** Sets how many bytes are held back until the call is settled. */
  keep(bytes: number): void {
    this.#heldBack = bytes
    this.#count()
  }

  /** Undefined if more may be read now; else resolves when it may, or when the call is stopped. */
  room(stop: Stop<Error>): Promise<void> | undefined {
    if (this.#counted === 0 || this.#budget.mayGrow(this)) return undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = (): void => {
      this.#budget.forget(waiting)
      stop.removeListener(wake)
      resolve()
    }
    const waiting = { lease: this, wake }
    this.#budget.wait(waiting)
    stop.onStop(wake)
    return promise
  }

  close(): void {
    this.#read = this.#heldBack = 0
    this.#count()
  }

  #count(): void {
    const bytes = this.#read + this.#heldBack
    const counted = bytes > bounds.answerUncountedBytesMax ? bytes : 0
    const more = counted - this.#counted
    this.#counted = counted
    if (more !== 0) this.#budget.change(this, more)
  }
}
