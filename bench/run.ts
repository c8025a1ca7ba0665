// npm run bench -- [--quick] [--only <one of the measures below>] [--peers <folder>]: measures Weir beside a bare nginx, a
// bare Bun proxy and the gateways whose programs are in the folder. A full run writes RESULTS.md and its chart; a quick or
// partial run only prints.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CHART, drawChart } from './chart.ts'
import { measureChoice } from './measures/choice.ts'
import { measureIdle } from './measures/idle.ts'
import { measureLedger } from './measures/ledger.ts'
import { measureManagement } from './measures/management.ts'
import type { Measure, Section } from './measures/measure.ts'
import { measurePlain } from './measures/plain.ts'
import { measurePrompt } from './measures/prompt.ts'
import { measureShared } from './measures/shared.ts'
import { measureSlow } from './measures/slow.ts'
import { measureStart } from './measures/start.ts'
import { measureStatistics } from './measures/statistics.ts'
import { measureStream } from './measures/stream.ts'
import { measureThreads } from './measures/threads.ts'
import { measureTranslated } from './measures/translated.ts'
import { measureTranslatedSlow } from './measures/translated-slow.ts'
import { describeMachine, describeSubjects, writeReport } from './report.ts'
import type { Peers } from './subjects/peers.ts'
import { findPeers, noPeers } from './subjects/peers.ts'
import { makeWeirHome } from './subjects/weir-home.ts'
import type { Workbench } from './system/workbench.ts'
import { runOnWorkbench, say } from './system/workbench.ts'

/** They run in this order: statistics use the records that the measure of the ledger has written. */
const measures: Readonly<Record<string, Measure>> = {
  plain: measurePlain,
  management: measureManagement,
  threads: measureThreads,
  prompt: measurePrompt,
  stream: measureStream,
  translated: measureTranslated,
  slow: measureSlow,
  'translated-slow': measureTranslatedSlow,
  start: measureStart,
  choice: measureChoice,
  ledger: measureLedger,
  statistics: measureStatistics,
  idle: measureIdle,
  shared: measureShared,
}

const RESULTS = join(import.meta.dir, 'RESULTS.md')

interface Flags {
  readonly quick: boolean
  readonly chosen: readonly string[]
  readonly peers: Peers
}

function readFlags(): Flags {
  const options = {
    quick: { type: 'boolean' },
    only: { type: 'string', multiple: true },
    peers: { type: 'string' },
  } as const
  const { quick = false, only, peers } = parseArgs({ options }).values
  const unknown = only?.find(name => !Object.hasOwn(measures, name))
  if (unknown !== undefined) throw new Error(`--only takes ${Object.keys(measures).join(', ')}, not "${unknown}".`)
  const chosen = Object.keys(measures).filter(name => only?.includes(name) ?? true)
  return { quick, chosen, peers: peers === undefined ? noPeers : findPeers(peers) }
}

async function measureAll(bench: Workbench, { quick, chosen, peers }: Flags): Promise<void> {
  const machine = describeMachine()
  const subjects = describeSubjects(peers)
  for (const { name, files } of peers.missing) say(`${name} is not there: ${files.join(' or ')}`)
  const home = makeWeirHome(bench)
  const sections: Section[] = []
  for (const name of chosen) {
    say(name)
    sections.push(await measures[name]!({ bench, home, peers, quick, say }))
  }
  const report = writeReport({ machine, subjects, sections })
  process.stdout.write(`\n${report}`)
  if (quick || chosen.length < Object.keys(measures).length) return
  writeFileSync(RESULTS, report)
  writeFileSync(CHART, drawChart(report))
  say('\nWritten to bench/RESULTS.md and docs/how-it-works/speed.svg.')
}

await runOnWorkbench('bench', bench => measureAll(bench, readFlags()))
