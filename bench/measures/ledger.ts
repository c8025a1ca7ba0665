// The ledger alone: the cost of hold, settle and record, in an empty database and in one with millions of records, and the
// time of searches there.

import { join } from 'node:path'
import { idAtMs } from '../../src/base/ids.ts'
import { openReader } from '../../src/store/engine/database.ts'
import { sqliteSteps } from '../../src/store/engine/sqlite-steps.ts'
import { findRecords } from '../../src/store/records/record-search.ts'
import { recordColumns } from '../../src/store/tables/records.ts'
import { runProgram } from '../system/program.ts'
import { figure, median } from './figures.ts'
import type { Measure, Measuring } from './measure.ts'

const ROUNDS = 3
const IN_FLIGHT = 64

interface LedgerRound {
  readonly callsPerSecond: number
  readonly cpuMicros: number
}

function runCalls(path: string, { quick }: Measuring, inFlight = IN_FLIGHT): LedgerRound {
  const calls = (quick ? 5_000 : 50_000) / (inFlight === 1 ? 10 : 1)
  const rounds = Array.from(
    { length: ROUNDS },
    () => JSON.parse(runProgram('ledger/calls.ts', [path, calls, inFlight, 100])) as LedgerRound,
  )
  return {
    callsPerSecond: median(rounds.map(round => round.callsPerSecond)),
    cpuMicros: median(rounds.map(round => round.cpuMicros)),
  }
}

const DAY_MS = 86_400_000

/** The time of the slowest search: accounts of very different sizes, on different days. */
function searchMs(path: string): number {
  const db = openReader(path)
  const run = sqliteSteps(db)
  const times: number[] = []
  for (const accountId of [1_000, 1_013, 1_250, 1_500, 1_900]) {
    for (const daysAgo of [1, 20, 60]) {
      const untilMs = Date.now() - daysAgo * DAY_MS
      const sinceMs = performance.now()
      const filter = { accountId, from: idAtMs(untilMs - DAY_MS), before: idAtMs(untilMs) }
      run(findRecords(recordColumns, { scope: null, filter, limit: 100 }))
      times.push(performance.now() - sinceMs)
    }
  }
  db.close()
  return Math.max(...times)
}

export const measureLedger: Measure = async measuring => {
  const { bench, quick, say } = measuring
  const records = quick ? 200_000 : 10_000_000
  const size = records.toLocaleString('en-US')
  const [empty, full] = [join(bench.folder, 'empty.db'), join(bench.folder, 'full.db')]
  const fresh = runCalls(empty, measuring)
  const alone = runCalls(empty, measuring, 1)
  say(`  in an empty database: ${figure(fresh.cpuMicros)} µs of CPU a call`)
  say(`  writing ${size} records …`)
  runProgram('ledger/fill.ts', [full, records])
  const found = searchMs(full)
  const among = runCalls(full, measuring)
  say(`  among ${size} records: ${figure(among.cpuMicros)} µs of CPU a call`)
  const row = (name: string, { cpuMicros, callsPerSecond }: LedgerRound): string[] => [
    name,
    figure(cpuMicros),
    figure(callsPerSecond),
  ]
  return {
    title: 'The ledger alone',
    about:
      `Hold, settle and record of each call through the writer, ${IN_FLIGHT} in flight, 100 accounts, everything on ` +
      `one core, every commit on the disk; medians of ${ROUNDS} rounds. A search is the first 100 records of an ` +
      `account on a day; the slowest of fifteen took ${figure(found)} ms.`,
    table: [
      ['database', 'CPU µs a call', 'calls/s'],
      row('empty', fresh),
      row('empty, one call at a time', alone),
      row(`${size} records`, among),
    ],
    targets: [
      { what: 'ledger, CPU of a call', most: 30, unit: ' µs', measured: fresh.cpuMicros },
      { what: `the same among ${size} records`, most: 30, unit: ' µs', measured: among.cpuMicros },
      { what: 'ledger, time of a call on one core', most: 125, unit: ' µs', measured: 1e6 / fresh.callsPerSecond },
      { what: 'what the ledger adds to a call alone', most: 1, unit: ' ms', measured: 1e3 / alone.callsPerSecond },
      { what: `search among ${size} records`, most: 50, unit: ' ms', measured: found },
    ],
  }
}
