// The clocks that main.ts passes to the parts: a monotonic clock for durations, the wall clock for dates.

export interface Clock {
  /** Milliseconds since an arbitrary start. Never goes back. */
  nowMs(): number
  /** Milliseconds since 1970, for dates that people read. */
  dateMs(): number
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  dateMs: () => Date.now(),
}
