// The thread that answers the queries of people: lists, searches, sums. It reads on its own connection, so that no call
// waits for a query.

import type { Database } from 'bun:sqlite'
import { openReader } from '../engine/database.ts'
import type { QueryHandlers, QueryInput, QueryName } from './queries.ts'
import { buildQueries } from './queries.ts'

export type QueryMessage =
  | { readonly open: string }
  | { readonly id: number; readonly name: QueryName; readonly input: string }
export interface QueryReply {
  readonly id: number
  /** JSON; undefined where the query failed. */
  readonly result?: string
  readonly fault?: string
}

declare const self: Worker

let db: Database | undefined
let reads: QueryHandlers

self.onmessage = (event: MessageEvent<QueryMessage>) => {
  const message = event.data
  if ('open' in message) {
    db = openReader(message.open)
    reads = buildQueries(db)
    return
  }
  const { id, name, input } = message
  try {
    // QueryWorker.query has checked that the input fits the name; the message has lost that type.
    const run = reads[name] as (input: QueryInput<QueryName>) => unknown
    postMessage({ id, result: JSON.stringify(run(JSON.parse(input))) } satisfies QueryReply)
  } catch (fault) {
    postMessage({ id, fault: fault instanceof Error ? fault.message : 'unknown error' } satisfies QueryReply)
  }
}
