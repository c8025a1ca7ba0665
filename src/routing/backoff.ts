// The pause before the next attempt: exponential backoff with full jitter, so that calls that failed together do not
// come back together.

const FIRST_MS = 250
const MAX_MS = 4_000

/** `attempts`: how many were made so far; `chance`: a random number from 0 to 1. */
export function backoffMs(attempts: number, chance: number): number {
  return chance * Math.min(FIRST_MS * 2 ** Math.max(0, attempts), MAX_MS)
}
