// How often processes look for what others have written about a response.

const EVERY_MS = 500
/** What takes long is done less often: for a tenth of the time at most. */
const SHARE = 10

/** How long to wait before something is read or written again that has taken so long. */
export const pauseAfterMs = (tookMs: number): number => Math.max(EVERY_MS, SHARE * tookMs)

export const pause = (ms = EVERY_MS): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))
