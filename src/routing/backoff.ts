// How long before the same is tried again: twice as long each time, and by chance anything from nothing to that, so
// that calls which failed together do not come back together.

const FIRST_MS = 250
const MOST_MS = 4_000

/** `attempts`: how many there were; `chance`: from 0 to 1. */
export function backoffMs(attempts: number, chance: number): number {
  return chance * Math.min(FIRST_MS * 2 ** Math.max(0, attempts), MOST_MS)
}
