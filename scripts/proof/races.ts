// Runs every race for as many rounds as one likes. Ends non-zero when one had a wrong number of winners.
//
//   bin/weir-bun scripts/proof/races.ts [--rounds 200] [--seed n]

import { parseArgs } from 'node:util'
import { raceNames, runRounds } from '../../test/races/rounds.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string' }, seed: { type: 'string' } } })
const rounds = Number(values.rounds ?? 200)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const say = (line: string): void => void process.stdout.write(`${line}\n`)

say(`seed ${seed}, ${rounds} rounds each`)
let violated = 0
for (const name of raceNames) {
  const sinceMs = performance.now()
  const violations = await runRounds({ rounds, seed, races: [name] })
  violated += violations.length
  say(`${name.padEnd(22)} ${((performance.now() - sinceMs) / 1_000).toFixed(1)} s, ${violations.length} violations`)
  for (const violation of violations.slice(0, 20)) say(`VIOLATION  ${violation}`)
}
process.exit(violated === 0 ? 0 : 1)
