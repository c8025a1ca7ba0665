// How much of all answers together is held in memory. A single answer may hold an event of many megabytes, a picture or
// the result of a tool: a thousand of them at a time would not fit.
//
// Whoever holds little is not counted. When the rest comes to more than there is room for, its upstreams are not read
// until there is room again; but for one, so that there always is somebody who goes on, comes to its end, and makes
// room. So what is held is bounded by the room for all and the largest answer of one.

import { bounds } from '../../base/bounds.ts'
import type { Stop } from '../../base/stop.ts'

export class AnswerMemory {
  readonly #bytesMax: number
  readonly #eventBytesMax: number
  readonly #waiting = new Set<Waiting>()
  #bytes = 0
  /** The one that goes on though there is no room. */
  #ahead: AnswerLease | undefined

  constructor(bytesMax: number, eventBytesMax: number = bounds.frameBytesMax) {
    this.#bytesMax = bytesMax
    this.#eventBytesMax = eventBytesMax
  }

  /** Of all that are counted. */
  get bytes(): number {
    return this.#bytes
  }

  open(): AnswerLease {
    return new AnswerLease({
      eventBytesMax: this.#eventBytesMax,
      change: (lease, more) => this.#change(lease, more),
      mayGrow: lease => this.#mayGrow(lease),
      wait: waiting => void this.#waiting.add(waiting),
      forget: waiting => void this.#waiting.delete(waiting),
    })
  }

  #mayGrow(lease: AnswerLease): boolean {
    if (this.#bytes <= this.#bytesMax) return true
    this.#ahead ??= lease
    return this.#ahead === lease
  }

  #change(lease: AnswerLease, more: number): void {
    this.#bytes += more
    if (more >= 0) return
    if (this.#ahead === lease && lease.bytes === 0) this.#ahead = undefined
    for (const waiting of this.#waiting) {
      if (!this.#mayGrow(waiting.lease)) return
      waiting.wake()
    }
  }
}

interface Waiting {
  readonly lease: AnswerLease
  wake(): void
}

interface Memory {
  readonly eventBytesMax: number
  change(lease: AnswerLease, more: number): void
  mayGrow(lease: AnswerLease): boolean
  wait(waiting: Waiting): void
  forget(waiting: Waiting): void
}

/** What one call holds of its answer. */
export class AnswerLease {
  readonly #memory: Memory
  #read = 0
  #kept = 0
  #counted = 0

  constructor(memory: Memory) {
    this.#memory = memory
  }

  /** How long one event of it may be, and all that is held back of it. */
  get eventBytesMax(): number {
    return this.#memory.eventBytesMax
  }

  /** What is counted of it. */
  get bytes(): number {
    return this.#counted
  }

  /** What has been read and is not passed on yet. */
  read(bytes: number): void {
    this.#read = bytes
    this.#count()
  }

  /** What is held back besides, until the call is settled. */
  keep(bytes: number): void {
    this.#kept = bytes
    this.#count()
  }

  /** Undefined when more may be read; else resolves when it may, or when the call is stopped. */
  room(stop: Stop<Error>): Promise<void> | undefined {
    if (this.#counted === 0 || this.#memory.mayGrow(this)) return undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = (): void => {
      this.#memory.forget(waiting)
      stop.forget(wake)
      resolve()
    }
    const waiting = { lease: this, wake }
    this.#memory.wait(waiting)
    stop.onStop(wake)
    return promise
  }

  close(): void {
    this.#read = this.#kept = 0
    this.#count()
  }

  #count(): void {
    const bytes = this.#read + this.#kept
    const counted = bytes > bounds.answerUncountedBytesMax ? bytes : 0
    const more = counted - this.#counted
    this.#counted = counted
    if (more !== 0) this.#memory.change(this, more)
  }
}
