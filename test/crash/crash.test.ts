// Kills the gateway at least thirty times with SIGKILL, under load and while it starts. The ledger must agree with what
// the callers and the upstream saw. scripts/proof/crash.ts does so thousands of times.

import { expect, test } from 'bun:test'
import { runCrashes } from './harness.ts'

const KILLS = 30
const MS_MAX = 600_000

test(
  'no SIGKILL loses, creates or misplaces money',
  async () => {
    const seed = Date.now() % 1_000_000
    const report = await runCrashes({ kills: KILLS, seed, untilAllHit: true })
    // The seed decides what each call does; the time of a kill depends on the machine.
    expect({ seed, violations: report.violations }).toEqual({ seed, violations: [] })
    expect(report.kills).toBeGreaterThanOrEqual(KILLS)
    // A run proves nothing unless kills have hit calls in every phase. It goes on until they have.
    expect(Object.entries(report.hits).filter(([, hits]) => hits === 0)).toEqual([])
    expect(report.recoveries).toBeGreaterThan(0)
    expect(report.upgrades).toBeGreaterThan(0)
  },
  MS_MAX,
)
