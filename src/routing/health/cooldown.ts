// A time until which something is blocked. If the clock jumps back far, the block ends: ending it too early costs one
// attempt, while a block that lasts too long costs many.

/** A clock that goes back by less than this has not jumped. */
const JUMP_MS = 1_000

export class Cooldown {
  #startedMs = 0
  #untilMs = 0

  remainingMs(nowMs: number): number {
    return nowMs > this.#startedMs - JUMP_MS ? Math.max(0, this.#untilMs - nowMs) : 0
  }

  /** Blocks for at least this long from now. A later end stays. */
  extend(durationMs: number, nowMs: number): void {
    this.#untilMs = nowMs + Math.max(durationMs, this.remainingMs(nowMs))
    this.#startedMs = nowMs
  }

  clear(): void {
    this.#untilMs = 0
  }
}
