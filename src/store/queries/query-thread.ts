// The thread that answers the queries of people: lists, searches, sums. It reads on its own connection, so that no call
// waits for a query.

import { serveThread } from '../../base/threads/serve-thread.ts'
import { openReader } from '../engine/database.ts'
import { sqliteSnapshots } from '../engine/sqlite-steps.ts'
import type { Steps } from '../engine/steps.ts'
import type { QueryName } from './queries.ts'
import { stepQueries } from './queries.ts'
import { statisticsQueries } from './statistics.ts'

/** Inputs and results are JSON: a list of rows takes half of the time that it takes as objects. */
export type QueryThreadMethods = { readonly [Name in QueryName]: (input: string) => string }

serveThread<QueryThreadMethods, string>(path => {
  const db = openReader(path)
  const runSteps = sqliteSnapshots(db)
  const handlers = {
    ...Object.fromEntries(
      Object.entries(stepQueries).map(([name, query]) => [
        name,
        (input: unknown) => runSteps(query(input as never) as Steps<unknown>),
      ]),
    ),
    ...statisticsQueries(db),
  }
  // QueryWorker.query has checked that the input fits the name; the JSON has lost that type.
  const methods = Object.entries(handlers).map(([name, handle]) => [
    name,
    (input: string) => JSON.stringify((handle as (input: unknown) => unknown)(JSON.parse(input))),
  ])
  return Object.fromEntries(methods) as QueryThreadMethods
})
