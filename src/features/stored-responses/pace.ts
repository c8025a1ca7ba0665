// How often a process polls what other processes have written about a response.

const EVERY_MS = 500
/** A slow read or write is repeated less often, so that it takes at most a tenth of the time. */
const SHARE = 10

/** The pause after a read or write that took this long. */
export const pauseAfterMs = (tookMs: number): number => Math.max(EVERY_MS, SHARE * tookMs)

export const pause = (ms = EVERY_MS): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))
