// Kills the gateway thousands of times and prints the violations. Exits with 1 at the first violation, or if the kills hit
// a phase too seldom for the run to mean anything.
//
//   bin/weir-bun scripts/proof/crash.ts [--kills 3000] [--seed n]

import { parseArgs } from 'node:util'
import { runCrashes } from '../../test/crash/harness.ts'
import { print } from './output.ts'

/** For a run of 3,000 kills; in proportion for shorter runs. */
const HITS_MIN = 50
const KILLS = 3_000
const PRINT_EACH = 100

const { values } = parseArgs({ options: { kills: { type: 'string' }, seed: { type: 'string' } } })
const kills = Number(values.kills ?? KILLS)
const seed = Number(values.seed ?? Date.now() % 1_000_000)

print(`seed ${seed}, ${kills} kills`)
let printed = 0
const report = await runCrashes({
  kills,
  seed,
  onKill(done, { calls }) {
    if (done < printed + PRINT_EACH) return
    printed = done
    print(`${done} kills, ${calls} calls, no violation`)
  },
})

for (const violation of report.violations) print(`VIOLATION  ${violation}`)
const hits = { ...report.hits, recovery: report.recoveries, upgrade: report.upgrades }
print('\nphase       kills that hit it   calls cut in it')
for (const [phase, count] of Object.entries(hits)) {
  const cut = phase in report.cut ? report.cut[phase as keyof typeof report.cut] : ''
  print(`${phase.padEnd(10)} ${String(count).padStart(18)} ${String(cut).padStart(17)}`)
}
print(`\noutcomes    ${JSON.stringify(report.outcomes)}`)
print(`charged at a checkpoint: ${report.checkpointed} calls`)
const seldom = Object.entries(hits).filter(([, count]) => count < (HITS_MIN * Math.min(kills, KILLS)) / KILLS)
for (const [phase, count] of seldom) print(`TOO SELDOM  ${phase}: ${count}`)
print(
  `\n${report.kills} kills (${report.starts} while starting), ${report.calls} calls, seed ${seed}, ` +
    `${report.seconds.toFixed(0)} s: ${report.violations.length} violations`,
)
process.exit(report.violations.length === 0 && seldom.length === 0 ? 0 : 1)
