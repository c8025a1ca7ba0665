// Kills the gateway thousands of times and says what was found. Ends non-zero at the first violation, or when a phase
// was hit too seldom for the run to mean anything.
//
//   bin/weir-bun scripts/proof/crash.ts [--kills 3000] [--seed n]

import { parseArgs } from 'node:util'
import { runCrashes } from '../../test/crash/harness.ts'

/** For a run of 3,000; smaller ones in proportion. */
const HITS_MIN = 50
const KILLS = 3_000
const SAY_EACH = 100

const { values } = parseArgs({ options: { kills: { type: 'string' }, seed: { type: 'string' } } })
const kills = Number(values.kills ?? KILLS)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const say = (line: string): void => void process.stdout.write(`${line}\n`)

say(`seed ${seed}, ${kills} kills`)
let said = 0
const report = await runCrashes({
  kills,
  seed,
  onKill(done, { calls }) {
    if (done < said + SAY_EACH) return
    said = done
    say(`${done} kills, ${calls} calls, no violation`)
  },
})

for (const violation of report.violations) say(`VIOLATION  ${violation}`)
const hits = { ...report.hits, recovery: report.recoveries, upgrade: report.upgrades }
say('\nphase       kills that hit it   calls cut in it')
for (const [phase, count] of Object.entries(hits)) {
  const cut = phase in report.cut ? report.cut[phase as keyof typeof report.cut] : ''
  say(`${phase.padEnd(10)} ${String(count).padStart(18)} ${String(cut).padStart(17)}`)
}
say(`\noutcomes    ${JSON.stringify(report.outcomes)}`)
say(`charged at a checkpoint: ${report.checkpointed} calls`)
const seldom = Object.entries(hits).filter(([, count]) => count < (HITS_MIN * Math.min(kills, KILLS)) / KILLS)
for (const [phase, count] of seldom) say(`TOO SELDOM  ${phase}: ${count}`)
say(
  `\n${report.kills} kills (${report.starts} while starting), ${report.calls} calls, seed ${seed}, ` +
    `${report.seconds.toFixed(0)} s: ${report.violations.length} violations`,
)
process.exit(report.violations.length === 0 && seldom.length === 0 ? 0 : 1)
