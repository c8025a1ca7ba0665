// The thread that answers the queries of people: lists, searches, sums. It reads on its own connection, so that no call
// waits for a query.

import { serveThread } from '../../base/threads/serve-thread.ts'
import { openReader } from '../engine/database.ts'
import { sqliteSnapshots } from '../engine/sqlite-steps.ts'
import type { Steps } from '../engine/steps.ts'
import { AttachedStatistics } from '../statistics/attached-statistics.ts'
import { overviewQueries } from './overview.ts'
import type { QueryName } from './queries.ts'
import { stepQueries } from './queries.ts'
import { statisticsQueries } from './statistics.ts'
import { useQueries } from './use.ts'

/** Inputs and results are JSON: a list of rows takes half of the time that it takes as objects. */
export type QueryThreadMethods = { readonly [Name in QueryName]: (input: string) => string }

/** The queries that read the statistics file. */
const withStatistics = { ...statisticsQueries, ...overviewQueries, ...useQueries }

serveThread<QueryThreadMethods, string>(path => {
  const db = openReader(path)
  const statistics = new AttachedStatistics(db)
  const runSteps = sqliteSnapshots(db)
  const methods = Object.entries(stepQueries).map(([name, query]) => [
    name,
    (input: string) => {
      if (Object.hasOwn(withStatistics, name)) statistics.refresh()
      // QueryWorker.query has checked that the input fits the name; the JSON has lost that type.
      return JSON.stringify(runSteps(query(JSON.parse(input) as never) as Steps<unknown>))
    },
  ])
  return Object.fromEntries(methods) as QueryThreadMethods
})
