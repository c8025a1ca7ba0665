// Learns how many calls a channel can serve at once. There is no limit until the channel shows that it is overloaded;
// then the limit is a fifth below the active calls, grows slowly while calls succeed, and is removed after a minute
// without overload.

const OVERLOAD_FACTOR = 0.8
/** With fewer active calls than these, a first sign of overload sets no limit: their number is not the cause. */
const CALLS_MIN = 4
const SLOW_FACTOR = 0.9
/** Slow answers alone do not bring the limit below this, because the calls themselves may be slow. */
const SLOW_FLOOR = 8
const QUIET_MS = 60_000
/** The limit grows only while at least this part of it is used. */
const USED_MIN = 0.5

export class AdaptiveLimit {
  #limit = Infinity
  #cutMs = 0
  #cutStep = 0

  /** The limit now; Infinity when there is none. */
  limitAt(nowMs: number): number {
    const ageMs = nowMs - this.#cutMs
    if (this.#limit !== Infinity && (ageMs >= QUIET_MS || ageMs < -QUIET_MS)) this.#limit = Infinity
    return Math.floor(this.#limit)
  }

  /** Whether a call began after the last cut. Earlier calls show the same overload again, not a new one. */
  isNewSignal(step: number): boolean {
    return step > this.#cutStep
  }

  /** `load`: the channel at this time. */
  noteOverload(nowMs: number, { activeCalls, step }: ChannelLoad): void {
    if (this.#limit === Infinity && activeCalls < CALLS_MIN) return
    this.#cut(nowMs, step, Math.max(1, Math.min(this.#limit, activeCalls) * OVERLOAD_FACTOR))
  }

  noteSlow(nowMs: number, { activeCalls, step }: ChannelLoad): void {
    const limit = Math.min(this.#limit, activeCalls) * SLOW_FACTOR
    if (limit >= SLOW_FLOOR) this.#cut(nowMs, step, limit)
  }

  noteSuccess(underWay: number): void {
    if (this.#limit !== Infinity && underWay >= this.#limit * USED_MIN) this.#limit += 1 / this.#limit
  }

  #cut(nowMs: number, step: number, limit: number): void {
    this.#limit = limit
    this.#cutMs = nowMs
    this.#cutStep = step
  }
}

export interface ChannelLoad {
  readonly activeCalls: number
  /** The number of the latest attempt on the channel. */
  readonly step: number
}
