// The thread that answers the queries of people: lists, searches, sums. It reads on its own connection, so that no call
// waits for a query.

import { serveThread } from '../../base/threads/serve-thread.ts'
import { openReader } from '../engine/database.ts'
import type { QueryName } from './queries.ts'
import { buildQueries } from './queries.ts'

/** Inputs and results are JSON: a list of rows takes half of the time that it takes as objects. */
export type QueryThreadMethods = { readonly [Name in QueryName]: (input: string) => string }

serveThread<QueryThreadMethods, string>(path => {
  const queries = Object.entries(buildQueries(openReader(path)))
  // QueryWorker.query has checked that the input fits the name; the JSON has lost that type.
  const handlers = queries.map(([name, run]) => [
    name,
    (input: string) => JSON.stringify((run as (input: unknown) => unknown)(JSON.parse(input))),
  ])
  return Object.fromEntries(handlers) as QueryThreadMethods
})
