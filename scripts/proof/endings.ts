// Makes many calls that end in every possible way. Exits with 1 if a lease or a hold is still open afterwards, or if a call
// was charged wrongly.
//
//   bin/weir-bun scripts/proof/endings.ts [--calls 20000] [--seed n]

import { parseArgs } from 'node:util'
import { noLeases } from '../../test/routing/open-leases.ts'
import { runStorm } from '../../test/routing/storm.ts'
import { print } from './output.ts'

const { values } = parseArgs({ options: { calls: { type: 'string' }, seed: { type: 'string' } } })
const calls = Number(values.calls ?? 20_000)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const listed = (all: ReadonlyMap<unknown, number>): string => [...all].map(([name, n]) => `${name} ${n}`).join(', ')

print(`seed ${seed}, ${calls} calls`)
const sinceMs = performance.now()
const { statuses, outcomes, wrongs, open, drained, holds } = await runStorm({ seed, calls })
print(`${((performance.now() - sinceMs) / 1_000).toFixed(1)} s; statuses: ${listed(statuses)}`)
print(`records: ${listed(outcomes)}`)
for (const wrong of wrongs.slice(0, 20)) print(`VIOLATION  ${wrong}`)
const isReleased = [open, drained].every(leases => Bun.deepEquals(leases, noLeases)) && holds === 0
if (!isReleased) print(`VIOLATION  not released: ${JSON.stringify({ open, drained, holds })}`)
process.exit(isReleased && wrongs.length === 0 ? 0 : 1)
