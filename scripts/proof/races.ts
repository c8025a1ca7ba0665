// Runs every race for a given number of rounds. Exits with 1 if a race had a wrong number of winners.
//
//   bin/weir-bun scripts/proof/races.ts [--rounds 200] [--seed n]

import { parseArgs } from 'node:util'
import { raceNames, runRounds } from '../../test/races/rounds.ts'
import { print } from './output.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string' }, seed: { type: 'string' } } })
const rounds = Number(values.rounds ?? 200)
const seed = Number(values.seed ?? Date.now() % 1_000_000)

print(`seed ${seed}, ${rounds} rounds each`)
let violated = 0
for (const name of raceNames) {
  const sinceMs = performance.now()
  const violations = await runRounds({ rounds, seed, races: [name] })
  violated += violations.length
  print(`${name.padEnd(22)} ${((performance.now() - sinceMs) / 1_000).toFixed(1)} s, ${violations.length} violations`)
  for (const violation of violations.slice(0, 20)) print(`VIOLATION  ${violation}`)
}
process.exit(violated === 0 ? 0 : 1)
