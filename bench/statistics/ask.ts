// Aggregates the records of a database without statistics, then runs the queries of dashboards and searches. Prints one
// line of JSON.
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

function aggregate(): { cpuMicros: number; records: number; seconds: number } {
  const [sinceMs, cpu] = [performance.now(), process.cpuUsage()]
  const aggregator = new StatisticsAggregator({ database, statistics, dateMs: Date.now })
  let records = 0
  for (;;) {
    const step = aggregator.step()
    records += step.records
    if (step.upToDate) break
  }
  aggregator.close()
  const used = process.cpuUsage(cpu)
  const seconds = (performance.now() - sinceMs) / 1_000
  return { cpuMicros: (used.user + used.system) / Math.max(1, records), records, seconds }
}

/** The slowest query. Only the caches of SQLite and of the system remain from earlier runs. */
function slowest(queries: readonly (readonly [name: string, run: () => unknown])[]): { ms: number; name: string } {
  const times = queries.map(([name, run]) => {
    const sinceMs = performance.now()
    run()
    return { ms: performance.now() - sinceMs, name }
  })
  return times.reduce((most, one) => (one.ms > most.ms ? one : most))
}

const rolled = existsSync(statistics) ? undefined : aggregate()
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
  // Not at midnight, so that both ends need smaller spans.
  const query = { scope: null, nowMs, fromMs: nowMs - count * DAY_MS + 12_345_000, beforeMs: nowMs }
  const top = { ...query, limit: 10, metric: 'cost' } as const
  const series = { ...query, span: count > 60 ? 'day' : 'hour' } as const
  return [
    [`summary of ${name}`, () => run(statisticsQueries.statisticsSummary(query))],
    [`summary of an account and ${name}`, () => run(statisticsQueries.statisticsSummary({ ...query, account: 1_001 }))],
    [
      `summary of a model and ${name}`,
      () => run(statisticsQueries.statisticsSummary({ ...query, model: 'openai/gpt-4o-7' })),
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
    [`errors of ${name}`, () => run(statisticsQueries.statisticsFailures(query))],
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
  'a cost of no record': { costMin: '999999999999' },
  'an unknown channel': { channel: 'none' },
  'an unknown provider': { provider: 'none' },
}
const searches = Object.entries(filters).flatMap(([name, filter]) =>
  [false, true].map(oldestFirst => {
    const query = { scope: null, filter: { ...range, ...filter }, oldestFirst, limit: 50 }
    return [`${name}, ${oldestFirst ? 'oldest' : 'newest'} first`, () => run(recordQueries.records(query))] as const
  }),
)

const first = { rolled, bytes: statSync(statistics).size, question: slowest(questions), search: slowest(searches) }
const again = { question: slowest(questions), search: slowest(searches) }
process.stdout.write(`${JSON.stringify({ ...first, again })}\n`)
db.close()
