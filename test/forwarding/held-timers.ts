// Timers whose time is over when a test says so, for waits of the gateway that have no clock of their own. A slow machine
// must not end such a wait before the test has done what belongs into it.

import { spyOn } from 'bun:test'

export interface HeldTimers {
  /** Ends the time of all timers that were set so far, and holds no more. */
  release(): void
}

const LONGEST_MS = 2 ** 31 - 1

/** Holds all timers of exactly this length. Timers that something clears must not be held: `release` runs them. */
export function holdTimers(heldMs: number): HeldTimers {
  const { setTimeout: setReal } = globalThis
  const held: (() => void)[] = []
  const setHeld = (run: () => void, ms?: number, ...args: unknown[]): unknown => {
    if (ms !== heldMs) return setReal(run, ms, ...(args as []))
    held.push(run)
    return setReal(() => {}, LONGEST_MS).unref()
  }
  const spy = spyOn(globalThis, 'setTimeout').mockImplementation(setHeld as typeof setTimeout)
  return {
    release() {
      spy.mockRestore()
      for (const run of held.splice(0)) run()
    },
  }
}
