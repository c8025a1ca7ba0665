// A storm of calls that end in every way there is, as long as one likes. Ends non-zero when anything is left of it.
//
//   bin/weir-bun scripts/proof/endings.ts [--calls 20000] [--seed n]

import { parseArgs } from 'node:util'
import { noLeases } from '../../test/routing/open-leases.ts'
import { runStorm } from '../../test/routing/storm.ts'

const { values } = parseArgs({ options: { calls: { type: 'string' }, seed: { type: 'string' } } })
const calls = Number(values.calls ?? 20_000)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const listed = (all: ReadonlyMap<unknown, number>): string => [...all].map(([name, n]) => `${name} ${n}`).join(', ')

say(`seed ${seed}, ${calls} calls`)
const sinceMs = performance.now()
const { statuses, outcomes, wrongs, open, drained, holds } = await runStorm({ seed, calls })
say(`${((performance.now() - sinceMs) / 1_000).toFixed(1)} s; statuses: ${listed(statuses)}`)
say(`records: ${listed(outcomes)}`)
for (const wrong of wrongs.slice(0, 20)) say(`VIOLATION  ${wrong}`)
const isCalm = [open, drained].every(leases => Bun.deepEquals(leases, noLeases)) && holds === 0
if (!isCalm) say(`VIOLATION  still taken: ${JSON.stringify({ open, drained, holds })}`)
process.exit(isCalm && wrongs.length === 0 ? 0 : 1)
