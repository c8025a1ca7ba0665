// limits.ts [--runs 20000] [--seed n]: random rules, callers, arrivals, endings and clocks, held call for call against
// limits that are plainly right, and every window of every limit against its bound. Ends with 1 at the first
// difference, and says where it was.

import { parseArgs } from 'node:util'
import { compareLimits } from '../../test/limits/exact.ts'

const options = { runs: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' } } as const
const { runs, seed } = parseArgs({ options }).values

const sinceMs = performance.now()
const calls = compareLimits(Number(runs), Number(seed))
const seconds = Math.round((performance.now() - sinceMs) / 1_000)
process.stdout.write(`${runs} histories, ${calls} calls from seed ${seed}, ${seconds} s, no difference\n`)
