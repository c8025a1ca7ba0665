// Whatever becomes of a call, all that was taken for it is given back, and it is charged what its record says; in full
// by scripts/proof/endings.ts.

import { expect, test } from 'bun:test'
import { noLeases } from './open-leases.ts'
import { runStorm } from './storm.ts'

test('after a storm nothing is left of it', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const { wrongs, open, drained, holds, outcomes } = await runStorm({ seed, calls: 1_500 })
  const calm = { seed, wrongs: [], open: noLeases, drained: noLeases, holds: 0 }
  expect({ seed, wrongs, open, drained, holds }).toEqual(calm)
  for (const outcome of ['completed', 'client_left', 'upstream_failed', 'refused', 'replayed']) {
    expect([outcome, (outcomes.get(outcome) ?? 0) > 5]).toEqual([outcome, true])
  }
})
