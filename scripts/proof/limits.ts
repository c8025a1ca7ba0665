// limits.ts [--runs 20000] [--seed n]: random rules, callers, arrivals, endings and clocks. Compares every call with a
// slow, obviously correct implementation of limits, and every window of every limit with its bound. Exits with 1 at the
// first difference and prints its place.

import { parseArgs } from 'node:util'
import { compareLimits } from '../../test/limits/exact.ts'

const options = { runs: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' } } as const
const { runs, seed } = parseArgs({ options }).values

const sinceMs = performance.now()
const calls = compareLimits(Number(runs), Number(seed))
const seconds = Math.round((performance.now() - sinceMs) / 1_000)
process.stdout.write(`${runs} histories, ${calls} calls from seed ${seed}, ${seconds} s, no difference\n`)
