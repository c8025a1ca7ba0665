// The ledger has a clock that tests cannot set. A budget of a day is unspent again when the day ends, at midnight in UTC.

import { DAY_MS } from '../../src/base/time.ts'

/** No test that uses this takes longer. */
const TEST_MS_MAX = 60_000

/** Waits for the next day if this one ends soon, so that a test sees one day only. */
export async function awaitMidnightIfNear(): Promise<void> {
  const leftMs = DAY_MS - (Date.now() % DAY_MS)
  if (leftMs > TEST_MS_MAX) return
  const endMs = Date.now() + leftMs
  while (Date.now() < endMs) await Bun.sleep(endMs - Date.now())
}
