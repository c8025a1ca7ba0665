// Plants every ledger bug in turn and prints after how many kills, or rounds of races, the harness noticed it. Exits with 1
// if a bug was not noticed. With --sound, no bug is planted, and the same loads run for some kills: then there must be no
// violation.
//
//   bin/weir-bun scripts/proof/planted.ts [--seed n] [--only text] [--sound]

import { parseArgs } from 'node:util'
import { bugs } from '../../test/crash/bugs.ts'
import { runCrashes } from '../../test/crash/harness.ts'
import { catchBug, copyGateway } from '../../test/crash/planted.ts'
import { print } from './output.ts'

const SOUND_KILLS = 6

const { values } = parseArgs({
  options: { seed: { type: 'string' }, only: { type: 'string' }, sound: { type: 'boolean', default: false } },
})
const seed = Number(values.seed ?? Date.now() % 1_000_000)

print(`seed ${seed}`)
const chosen = bugs.filter(({ name }) => name.includes(values.only ?? ''))
const failures = values.sound ? await runSound() : await runPlanted()
process.exit(failures === 0 ? 0 : 1)

async function runPlanted(): Promise<number> {
  const copy = copyGateway()
  let missed = 0
  for (const bug of chosen) {
    const { after, violation, seconds } = await catchBug(bug, seed, copy)
    if (after === undefined) missed++
    const verdict = after === undefined ? 'MISSED' : `${after} ${bug.by === 'kills' ? 'kills' : 'rounds'}`
    print(`${bug.name.padEnd(34)} ${verdict.padEnd(10)} ${seconds.toFixed(1)} s   ${violation.slice(0, 150)}`)
  }
  copy.remove()
  print(missed === 0 ? 'every planted bug was noticed' : `${missed} planted bugs were not noticed`)
  return missed
}

async function runSound(): Promise<number> {
  let failed = 0
  for (const { name, load } of chosen) {
    if (load === undefined) continue
    const { violations, calls, seconds } = await runCrashes({ kills: SOUND_KILLS, seed, upgrades: 0, load })
    if (violations.length > 0) failed++
    print(
      `${name.padEnd(34)} ${calls} calls, ${seconds.toFixed(1)} s   ${violations[0]?.slice(0, 150) ?? 'no violation'}`,
    )
  }
  print(failed === 0 ? 'no load has a violation without its bug' : `${failed} loads have violations without their bugs`)
  return failed
}
