// The thread that owns the only writing connection. Each message is a batch; a batch is one transaction, and its
// results go back when it is on the disk.

import { migrate, openWriter } from './database.ts'
import type { Input, OperationName } from './operations.ts'
import { buildOperations, recoverHolds } from './operations.ts'

export interface Job {
  readonly name: OperationName
  readonly input: Input<OperationName>
  /** By the wall clock, which both threads share. What begins later is not done: its caller has been told so. */
  readonly dueMs: number
}

export type Done = readonly [result: unknown, fault?: string]

/** A text is a batch: Job[] as JSON, answered by Done[] as JSON, in the same order. */
export type ToWriter = string | { readonly open: string } | { readonly close: true }
export type FromWriter =
  | string
  | { readonly ready: { readonly recovered: number; readonly lastCallId: number } }
  | { readonly failed: string }
  | { readonly closed: true }

declare const self: Worker

let db: ReturnType<typeof openWriter>
let operations: ReturnType<typeof buildOperations>

const answer = (message: FromWriter): void => postMessage(message)

function open(path: string): void {
  db = openWriter(path)
  migrate(db)
  const recovered = recoverHolds(db)
  operations = buildOperations(db)
  const last = db.query('SELECT coalesce(max(call_id), 0) AS last FROM record').get() as { last: bigint }
  answer({ ready: { recovered, lastCallId: Number(last.last) } })
}

function runJob(job: Job): Done {
  if (Date.now() >= job.dueMs) return [null, 'too late']
  // The name and its input come as a pair from Writer.run, which is typed; the message between has lost that.
  const run = operations[job.name] as (input: Input<OperationName>) => unknown
  return [run(job.input)]
}

function runBatch(jobs: readonly Job[]): readonly Done[] {
  try {
    return db.transaction(() => jobs.map(runJob)).immediate()
  } catch {
    // One of them failed in a way we did not foresee. Alone, each gets its own verdict.
    return jobs.map(job => {
      try {
        return db.transaction(() => runJob(job)).immediate()
      } catch (fault) {
        return [null, fault instanceof Error ? fault.message : 'unknown fault'] as const
      }
    })
  }
}

self.onmessage = (event: MessageEvent<ToWriter>) => {
  const message = event.data
  try {
    if (typeof message === 'string') return answer(JSON.stringify(runBatch(JSON.parse(message) as Job[])))
    if ('open' in message) return open(message.open)
    db.close()
    answer({ closed: true })
  } catch (fault) {
    answer({ failed: fault instanceof Error ? fault.message : 'unknown fault' })
  }
}
