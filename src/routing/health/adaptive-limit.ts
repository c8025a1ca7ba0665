// How many calls a channel may have under way, learned from how it takes them: no bound until it shows that it has too
// much to do, then a fifth less than it had, slowly more while it is well, and no bound again after a quiet minute.

const LESS = 0.8
/** Fewer than these are not what is too much, until there is a limit. */
const MANY = 4
const LESS_WHEN_SLOW = 0.9
/** Slowness alone, which may lie in the calls, does not bring it below this. */
const SLOW_FLOOR = 8
const QUIET_MS = 60_000
/** It grows only while it is used. */
const USED = 0.5

export class AdaptiveLimit {
  #limit = Infinity
  #sinceMs = 0
  #sinceStep = 0

  at(nowMs: number): number {
    const ageMs = nowMs - this.#sinceMs
    if (this.#limit !== Infinity && (ageMs >= QUIET_MS || ageMs < -QUIET_MS)) this.#limit = Infinity
    return Math.floor(this.#limit)
  }

  /** A call that began when its last cut had been made; those before it are one and the same sign. */
  tells(step: number): boolean {
    return step > this.#sinceStep
  }

  /** `underWay` and `step`: of the channel at this time. */
  overloaded(nowMs: number, { underWay, step }: Load): void {
    if (this.#limit === Infinity && underWay < MANY) return
    this.#cut(nowMs, step, Math.max(1, Math.min(this.#limit, underWay) * LESS))
  }

  slow(nowMs: number, { underWay, step }: Load): void {
    const less = Math.min(this.#limit, underWay) * LESS_WHEN_SLOW
    if (less >= SLOW_FLOOR) this.#cut(nowMs, step, less)
  }

  well(underWay: number): void {
    if (this.#limit !== Infinity && underWay >= this.#limit * USED) this.#limit += 1 / this.#limit
  }

  #cut(nowMs: number, step: number, limit: number): void {
    this.#limit = limit
    this.#sinceMs = nowMs
    this.#sinceStep = step
  }
}

export interface Load {
  readonly underWay: number
  readonly step: number
}
