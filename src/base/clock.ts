// Time enters through main.ts. Durations come from the monotonic clock, dates from the wall.

export interface Clock {
  /** Milliseconds since some start; never goes back. */
  nowMs(): number
  /** Milliseconds since 1970, for dates that people read. */
  dateMs(): number
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  dateMs: () => Date.now(),
}
