// A thing that is closed for a while and then tried by one call at a time until one of them proves it well: what is
// broken, and a credential that is refused.
//
// Calls are counted by steps, not by time: one that began before the closing proves nothing of what came after it.

import { Until } from './until.ts'

export interface ClosingTimes {
  readonly firstMs: number
  /** Each time that it is tried in vain it stays closed twice as long, up to this. */
  readonly mostMs: number
}

export class Closing<Prober extends object> {
  readonly #times: ClosingTimes
  readonly #until = new Until()
  #isClosed = false
  #forMs = 0
  #sinceStep = 0
  #prober: Prober | undefined

  constructor(times: ClosingTimes) {
    this.#times = times
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  leftMs(nowMs: number): number {
    return this.#isClosed ? this.#until.leftMs(nowMs) : 0
  }

  /** Open, or its time is over and nobody tries it yet. */
  passes(nowMs: number): boolean {
    return !this.#isClosed || (this.#prober === undefined && this.#until.leftMs(nowMs) === 0)
  }

  /** Somebody begins: the first one after its time is the one that tries it. */
  enter(prober: Prober, nowMs: number): void {
    if (this.#isClosed && this.passes(nowMs)) this.#prober = prober
  }

  /** Whether it was this one that tried it, which from now on it does no more. */
  leave(prober: Prober): boolean {
    if (this.#prober !== prober) return false
    this.#prober = undefined
    return true
  }

  /** Whether it is closed and this step was after that, and so can tell something. */
  isBefore(step: number): boolean {
    return this.#isClosed && step > this.#sinceStep
  }

  /** `spread` is about 1 and keeps many from coming back at once. */
  close(nowMs: number, { step, spread }: { readonly step: number; readonly spread: number }): void {
    this.#forMs = this.#isClosed ? Math.min(this.#forMs * 2, this.#times.mostMs) : this.#times.firstMs
    this.#isClosed = true
    this.#sinceStep = step
    this.#until.extend(this.#forMs * spread, nowMs)
  }

  /** One more failure meanwhile: as long again from now. */
  extend(nowMs: number, spread: number): void {
    this.#until.extend(this.#forMs * spread, nowMs)
  }

  open(): void {
    this.#isClosed = false
    this.#prober = undefined
    this.#until.clear()
  }
}
