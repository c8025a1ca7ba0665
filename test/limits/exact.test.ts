// Limits against limits that are plainly right, in the size for every day; scripts/proof/limits.ts runs more of it.

import { expect, test } from 'bun:test'
import { compareLimits } from './exact.ts'

test('admits what slow limits admit, to the call, and keeps every window', () => {
  expect(compareLimits(400)).toBeGreaterThan(20_000)
}, 60_000)
