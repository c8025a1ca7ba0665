// Sums up the records of a database that has no statistics yet, and then asks what a dashboard and a search ask. Prints
// one line of JSON.
//
// ask.ts <database>

import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { idAtMs } from '../../src/base/ids.ts'
import { openReader } from '../../src/store/engine/database.ts'
import { sqliteSteps } from '../../src/store/engine/sqlite-steps.ts'
import { recordQueries } from '../../src/store/queries/records.ts'
import { statisticsQueries } from '../../src/store/queries/statistics.ts'
import { StatisticsAggregator } from '../../src/store/statistics/aggregator.ts'
import { AttachedStatistics } from '../../src/store/statistics/attached-statistics.ts'

const [database = ''] = process.argv.slice(2)
const statistics = join(dirname(database), 'stats.db')
const DAY_MS = 86_400_000

function roll(): { cpuMicros: number; records: number; seconds: number } {
  const [sinceMs, cpu] = [performance.now(), process.cpuUsage()]
  const roller = new StatisticsAggregator({ database, statistics, dateMs: Date.now })
  let records = 0
  for (;;) {
    const step = roller.step()
    records += step.records
    if (step.upToDate) break
  }
  roller.close()
  const used = process.cpuUsage(cpu)
  const seconds = (performance.now() - sinceMs) / 1_000
  return { cpuMicros: (used.user + used.system) / Math.max(1, records), records, seconds }
}

/** The slowest of some, each asked as if for the first time but for what SQLite and the system keep. */
function slowest(asked: readonly (readonly [name: string, ask: () => unknown])[]): { ms: number; name: string } {
  const times = asked.map(([name, ask]) => {
    const sinceMs = performance.now()
    ask()
    return { ms: performance.now() - sinceMs, name }
  })
  return times.reduce((most, one) => (one.ms > most.ms ? one : most))
}

const rolled = existsSync(statistics) ? undefined : roll()
const db = openReader(database)
new AttachedStatistics(db).refresh()
const run = sqliteSteps(db)
const nowMs = Date.now()
const days = [
  ['a day', 1],
  ['a week', 7],
  ['a month', 30],
  ['sixty days', 60],
  ['three hundred days', 300],
] as const

const questions = days.flatMap(([name, count]) => {
  // Not at midnight, so that both ends are made of smaller spans.
  const ask = { scope: null, nowMs, fromMs: nowMs - count * DAY_MS + 12_345_000, beforeMs: nowMs }
  const top = { ...ask, limit: 10, metric: 'cost' } as const
  const series = { ...ask, span: count > 60 ? 'day' : 'hour' } as const
  return [
    [`summary of ${name}`, () => run(statisticsQueries.statisticsSummary(ask))],
    [`summary of an account and ${name}`, () => run(statisticsQueries.statisticsSummary({ ...ask, account: 1_001 }))],
    [
      `summary of a model and ${name}`,
      () => run(statisticsQueries.statisticsSummary({ ...ask, model: 'openai/gpt-4o-7' })),
    ],
    [`steps of ${name}`, () => run(statisticsQueries.statisticsSeries(series))],
    [`steps of a key and ${name}`, () => run(statisticsQueries.statisticsSeries({ ...series, key: 1_001_001 }))],
    [`top keys of ${name}`, () => run(statisticsQueries.statisticsTop({ ...top, of: 'key' }))],
    [`top accounts of ${name}`, () => run(statisticsQueries.statisticsTop({ ...top, of: 'account' }))],
    [`top models of ${name}`, () => run(statisticsQueries.statisticsTop({ ...top, of: 'model' }))],
    [`top channels of ${name}`, () => run(statisticsQueries.statisticsTop({ ...top, of: 'channel' }))],
    [
      `top models of an account and ${name}`,
      () => run(statisticsQueries.statisticsTop({ ...top, of: 'model', account: 1_001 })),
    ],
    [
      `top keys of a model and ${name}`,
      () => run(statisticsQueries.statisticsTop({ ...top, of: 'key', model: 'openai/gpt-4o-7' })),
    ],
    [`end users of ${name}`, () => run(statisticsQueries.statisticsEndUsers({ ...top, account: 1_001 }))],
    [`errors of ${name}`, () => run(statisticsQueries.statisticsFailures(ask))],
  ] as const
})

const range = { from: idAtMs(nowMs - 90 * DAY_MS), before: idAtMs(nowMs) }
const filters = {
  'all': {},
  'an account': { accountId: 1_001 },
  'a small account': { accountId: 1_990 },
  'a key and an outcome': { keyId: 1_001_001, outcome: ['upstream_failed'] },
  'a model': { model: { provider: 'openai', name: 'gpt-4o-7' } },
  'a channel': { channel: 'openai#7' },
  'an error': { error: 'upstream_unusable' },
  'a status': { status: 502 },
  'an end user': { endUser: 'user 70' },
  'a cost that none has': { costMin: '999999999999' },
  'a channel that is not there': { channel: 'none' },
  'a provider that is not there': { provider: 'none' },
}
const searches = Object.entries(filters).flatMap(([name, filter]) =>
  [false, true].map(oldestFirst => {
    const ask = { scope: null, filter: { ...range, ...filter }, oldestFirst, limit: 50 }
    return [`${name}, ${oldestFirst ? 'oldest' : 'newest'} first`, () => run(recordQueries.records(ask))] as const
  }),
)

const told = { rolled, bytes: statSync(statistics).size, question: slowest(questions), search: slowest(searches) }
const again = { question: slowest(questions), search: slowest(searches) }
process.stdout.write(`${JSON.stringify({ ...told, again })}\n`)
db.close()
