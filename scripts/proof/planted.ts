// Plants every bug in turn and says after how many kills, or in which race, the harness saw it. Ends non-zero when one
// got away.
//
//   bin/weir-bun scripts/proof/planted.ts [--seed n] [--only text]

import { parseArgs } from 'node:util'
import { bugs } from '../../test/crash/bugs.ts'
import { catchBug } from '../../test/crash/planted.ts'

const { values } = parseArgs({ options: { seed: { type: 'string' }, only: { type: 'string' } } })
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const say = (line: string): void => void process.stdout.write(`${line}\n`)

say(`seed ${seed}`)
let escaped = 0
for (const bug of bugs.filter(({ name }) => name.includes(values.only ?? ''))) {
  const { after, violation: said, seconds } = await catchBug(bug, seed)
  if (after === undefined) escaped++
  const verdict = after === undefined ? 'NOT SEEN' : `${after} ${bug.by === 'kills' ? 'kills' : 'rounds'}`
  say(`${bug.name.padEnd(34)} ${verdict.padEnd(10)} ${seconds.toFixed(1)} s   ${said.slice(0, 150)}`)
}
say(escaped === 0 ? 'every planted bug was seen' : `${escaped} planted bugs were not seen`)
process.exit(escaped === 0 ? 0 : 1)
