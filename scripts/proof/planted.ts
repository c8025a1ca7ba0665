// Plants every bug in turn and says after how many kills, or in which race, the harness saw it. Ends non-zero when one
// got away. With --sound, no bug is planted and the same loads run for some kills: then there must be no violation.
//
//   bin/weir-bun scripts/proof/planted.ts [--seed n] [--only text] [--sound]

import { parseArgs } from 'node:util'
import { bugs } from '../../test/crash/bugs.ts'
import { runCrashes } from '../../test/crash/harness.ts'
import { catchBug, copyGateway } from '../../test/crash/planted.ts'

const SOUND_KILLS = 6

const { values } = parseArgs({
  options: { seed: { type: 'string' }, only: { type: 'string' }, sound: { type: 'boolean', default: false } },
})
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const say = (line: string): void => void process.stdout.write(`${line}\n`)

say(`seed ${seed}`)
const chosen = bugs.filter(({ name }) => name.includes(values.only ?? ''))
const failures = values.sound ? await runSound() : await runPlanted()
process.exit(failures === 0 ? 0 : 1)

async function runPlanted(): Promise<number> {
  const copy = copyGateway()
  let escaped = 0
  for (const bug of chosen) {
    const { after, violation: said, seconds } = await catchBug(bug, seed, copy)
    if (after === undefined) escaped++
    const verdict = after === undefined ? 'NOT SEEN' : `${after} ${bug.by === 'kills' ? 'kills' : 'rounds'}`
    say(`${bug.name.padEnd(34)} ${verdict.padEnd(10)} ${seconds.toFixed(1)} s   ${said.slice(0, 150)}`)
  }
  copy.remove()
  say(escaped === 0 ? 'every planted bug was seen' : `${escaped} planted bugs were not seen`)
  return escaped
}

async function runSound(): Promise<number> {
  let wrong = 0
  for (const { name, load } of chosen) {
    if (load === undefined) continue
    const { violations, calls, seconds } = await runCrashes({ kills: SOUND_KILLS, seed, upgrades: 0, load })
    if (violations.length > 0) wrong++
    say(
      `${name.padEnd(34)} ${calls} calls, ${seconds.toFixed(1)} s   ${violations[0]?.slice(0, 150) ?? 'no violation'}`,
    )
  }
  say(wrong === 0 ? 'no load has a violation without its bug' : `${wrong} loads have violations without their bugs`)
  return wrong
}
