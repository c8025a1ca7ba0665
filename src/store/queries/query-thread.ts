// The thread that answers what people look at: lists, searches, sums. It reads on a connection of its own, so that no
// call waits for it, whatever they ask.

import type { Database } from 'bun:sqlite'
import { openReader } from '../engine/database.ts'
import type { ReadInput, ReadName, RunReads } from './reads.ts'
import { buildReads } from './reads.ts'

export type ToDesk =
  | { readonly open: string }
  | { readonly id: number; readonly name: ReadName; readonly input: string }
export interface FromDesk {
  readonly id: number
  /** JSON; undefined where it failed. */
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
    // The name and its input come as a pair from Desk.ask, which is typed; the message between has lost that.
    const run = reads[name] as (input: ReadInput<ReadName>) => unknown
    postMessage({ id, result: JSON.stringify(run(JSON.parse(input))) } satisfies FromDesk)
  } catch (fault) {
    postMessage({ id, fault: fault instanceof Error ? fault.message : 'unknown fault' } satisfies FromDesk)
  }
}
