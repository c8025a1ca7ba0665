// However a call ends, all of its leases are released, and it is charged what its record says; scripts/proof/endings.ts
// runs longer.

import { expect, test } from 'bun:test'
import { noLeases } from './open-leases.ts'
import { runStorm } from './storm.ts'

test('after a storm of calls no lease and no hold is left', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const { wrongs, open, drained, holds, outcomes } = await runStorm({ seed, calls: 1_500 })
  const expected = { seed, wrongs: [], open: noLeases, drained: noLeases, holds: 0 }
  expect({ seed, wrongs, open, drained, holds }).toEqual(expected)
  for (const outcome of ['completed', 'client_left', 'upstream_failed', 'refused', 'replayed']) {
    expect([outcome, (outcomes.get(outcome) ?? 0) > 5]).toEqual([outcome, true])
  }
})
