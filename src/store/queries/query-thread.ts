// The thread that answers the queries of people: lists, searches, sums. It reads on its own connection, so that no call
// waits for a query.

import type { Database } from 'bun:sqlite'
import { openReader } from '../engine/database.ts'
import type { ReadInput, ReadName, RunReads } from './reads.ts'
import { buildReads } from './reads.ts'

export type ToDesk =
  | { readonly open: string }
  | { readonly id: number; readonly name: ReadName; readonly input: string }
export interface FromDesk {
  readonly id: number
  /** JSON; undefined where the query failed. */
  readonly result?: string
  readonly fault?: string
}

declare const self: Worker

let db: Database | undefined
let reads: RunReads

self.onmessage = (event: MessageEvent<ToDesk>) => {
  const message = event.data
  if ('open' in message) {
    db = openReader(message.open)
    reads = buildReads(db)
    return
  }
  const { id, name, input } = message
  try {
    // QueryWorker.query has checked that the input fits the name; the message has lost that type.
    const run = reads[name] as (input: ReadInput<ReadName>) => unknown
    postMessage({ id, result: JSON.stringify(run(JSON.parse(input))) } satisfies FromDesk)
  } catch (fault) {
    postMessage({ id, fault: fault instanceof Error ? fault.message : 'unknown error' } satisfies FromDesk)
  }
}
