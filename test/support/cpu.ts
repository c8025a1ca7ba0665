// Work whose cost must not explode with the size of its input. The tests that use this file are not about speed: an input
// that makes a quadratic reader work for minutes must be read in a moment. So each bound is at least twenty times what the
// work needs, and processor time is measured, which hardly depends on how busy the machine is.

import { expect } from 'bun:test'

const MICROS_PER_MS = 1_000
const TRIES_MAX = 10

async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / MICROS_PER_MS
}

/**
 * Passes as soon as one run needs less processor time than `cpuMsMax`. A compilation or a collection of old garbage may
 * fall into any single run, and the time is that of the whole process; only work that is slow each time fails.
 */
export async function expectCheap(cpuMsMax: number, work: () => unknown): Promise<void> {
  let leastMs = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < TRIES_MAX && leastMs >= cpuMsMax; tries++) {
    if (tries > 0) Bun.gc(true) // a collection costs more than most of the work that is measured
    leastMs = Math.min(leastMs, await cpuMsOf(work))
  }
  expect(leastMs).toBeLessThan(cpuMsMax)
}
