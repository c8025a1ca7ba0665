// model.ts [--steps 1000000] [--seed 1]: random operations on the ledger and on its model, in runs of 25,000, each with an
// empty database and its own seed. Exits with 1 at the first difference and prints its place.

import { parseArgs } from 'node:util'
import { runModel } from '../../test/store/model-run.ts'

const RUN_STEPS = 25_000
const options = { steps: { type: 'string', default: '1000000' }, seed: { type: 'string', default: '1' } } as const
const { values } = parseArgs({ options })

const sinceMs = performance.now()
const total: Record<string, number> = {}
let done = 0
for (let seed = Number(values.seed); done < Number(values.steps); seed++, done += RUN_STEPS) {
  for (const [name, count] of Object.entries(runModel({ seed, steps: RUN_STEPS }))) {
    total[name] = (total[name] ?? 0) + count
  }
}
for (const name of Object.keys(total).sort()) process.stdout.write(`${String(total[name]).padStart(8)}  ${name}\n`)
const seconds = Math.round((performance.now() - sinceMs) / 1_000)
process.stdout.write(`${done} operations from seed ${values.seed}, ${seconds} s, no difference\n`)
