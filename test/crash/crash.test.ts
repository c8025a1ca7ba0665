// Thirty times kill -9, under load and while it starts: the books must agree with what callers and upstream saw.
// scripts/proof/crash.ts does it thousands of times.

import { expect, test } from 'bun:test'
import { runCrashes } from './harness.ts'

const KILLS = 30
const MS_MAX = 600_000

test('no kill takes, invents or forgets money', async () => {
  const seed = Date.now() % 1_000_000
  const report = await runCrashes({ kills: KILLS, seed })
  // The seed decides what each call does; when a kill falls, the machine decides.
  expect({ seed, violations: report.violations }).toEqual({ seed, violations: [] })
  expect(report.kills).toBeGreaterThanOrEqual(KILLS)
  // A run that never catches a call where it is weak proves nothing.
  expect(Object.entries(report.hits).filter(([, hits]) => hits === 0)).toEqual([])
  expect(report.recoveries).toBeGreaterThan(0)
  expect(report.upgrades).toBeGreaterThan(0)
}, MS_MAX)
