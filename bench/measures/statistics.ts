// Statistics, searches and exports in a database with millions of records.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { runProgram } from '../system/program.ts'
import { figure } from './figures.ts'
import type { Measure } from './measure.ts'

interface Slowest {
  readonly ms: number
  readonly name: string
}

interface QueryResults {
  readonly rolled?: { readonly cpuMicros: number; readonly seconds: number }
  readonly bytes: number
  readonly question: Slowest
  readonly search: Slowest
  readonly again: { readonly question: Slowest; readonly search: Slowest }
}

interface Exported {
  readonly rows: number
  readonly seconds: number
  readonly grown: number
}

const MEGABYTE = 1024 * 1024

export const measureStatistics: Measure = async ({ bench, quick, say }) => {
  const records = quick ? 200_000 : 10_000_000
  const path = join(bench.folder, 'full.db')
  if (!existsSync(path)) {
    say(`  writing ${records.toLocaleString('en-US')} records …`)
    runProgram('ledger/fill.ts', [path, records])
  }
  say('  summing them up …')
  const results = JSON.parse(runProgram('statistics/ask.ts', [path])) as QueryResults
  const wanted = Math.min(records, 1_000_000)
  const exports = (['ndjson', 'csv'] as const).map(format => {
    const exported = JSON.parse(runProgram('statistics/export.ts', [path, wanted, format])) as Exported
    say(`  ${exported.rows} records as ${format}: ${figure(exported.seconds)} s, ${figure(exported.grown)} MB more`)
    return { format, ...exported }
  })
  const { rolled, bytes, question, search, again } = results
  const among = `among ${records.toLocaleString('en-US')} records`
  return {
    title: 'Statistics, searches and exports',
    about:
      `${among}: 300 days, 1,000 keys, 200 models, 50 channels. To sum them up takes ` +
      `${figure(rolled?.cpuMicros ?? 0)} µs of CPU a record (${figure(rolled?.seconds ?? 0)} s in all) and ` +
      `${figure(bytes / MEGABYTE)} MB. The slowest of 65 questions and of 24 searches, in a process that has asked ` +
      'nothing before, and in the same again; each search is a page of 50 within 90 days.',
    table: [
      ['what', 'first ms', 'which', 'again ms', 'which'],
      ['question', figure(question.ms), question.name, figure(again.question.ms), again.question.name],
      ['search', figure(search.ms), search.name, figure(again.search.ms), again.search.name],
      ...exports.map(({ format, rows, seconds, grown }) => [
        `${rows} records as ${format}`,
        figure(seconds * 1_000),
        `${figure(grown)} MB more memory`,
        '',
        '',
      ]),
    ],
    targets: [
      { what: `statistics ${among}`, most: 200, unit: ' ms', measured: question.ms },
      { what: `the slowest search ${among}`, most: 100, unit: ' ms', measured: search.ms },
      { what: 'memory that an export of a million takes', most: 96, unit: ' MB', measured: exports[0]!.grown },
    ],
  }
}
