// The thread that owns the only writing connection. Each message is a batch; a batch is one transaction, and its
// results go back when it is on the disk.

import type { Database } from 'bun:sqlite'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { RunAudited } from '../audit-log/audited.ts'
import { isAudited, openAudit } from '../audit-log/audited.ts'
import type { Books } from '../ledger/books.ts'
import { openBooks } from '../ledger/books.ts'
import { recoverHolds } from '../ledger/recovery.ts'
import { Ballast } from './ballast.ts'
import { copyDatabase, migrate, openWriter, StoreError } from './database.ts'
import type { Input, OperationName } from './operations.ts'
import { beginning } from './operations.ts'
import type { Operating } from './run-operations.ts'
import { buildOperations } from './run-operations.ts'
import type { Done, FromWriter, Job, ToWriter, WriterOptions } from './writer-messages.ts'

declare const self: Worker

let db: Database
let ballast: Ballast
let operations: Operating
let runAudited: RunAudited

const answer = (message: FromWriter): void => postMessage(message)

function open({ path, ballastBytes, databaseBytesMax, responsesBytesMax }: WriterOptions): void {
  db = openWriter(path)
  migrate(db, { backUp: version => backUpBefore(path, version) })
  const books = openBooks(db)
  ballast = new Ballast(db, { folder: dirname(path), bytes: ballastBytes, databaseBytesMax })
  const recovered = recover(books)
  operations = buildOperations(books, { responsesBytesMax })
  runAudited = openAudit(db, { nowMs: books.nowMs, onRolledBack: () => books.budgets.reload() })
  const last = db
    .query(
      `SELECT max((SELECT coalesce(max(call_id), 0) FROM record), (SELECT coalesce(max(call_id), 0) FROM hold),
         (SELECT coalesce(max(ref), 0) FROM transfer), (SELECT coalesce(max(id), 0) FROM api_key),
         (SELECT coalesce(max(id), 0) FROM account), (SELECT coalesce(max(id), 0) FROM code),
         (SELECT coalesce(max(call_id), 0) FROM task), (SELECT coalesce(max(id), 0) FROM person),
         (SELECT coalesce(max(id), 0) FROM session), (SELECT coalesce(max(id), 0) FROM invitation),
         (SELECT coalesce(max(id), 0) FROM webhook)) AS last`,
    )
    .get() as { last: bigint }
  answer({ ready: { recovered, lastId: Number(last.last) } })
}

/** On a disk that is full, what a crash cut off is ended with the room of the ballast, as all that is under way. */
function recover(books: Books): number {
  try {
    return recoverHolds(books)
  } catch (fault) {
    if (!isFull(fault)) throw fault
    ballast.giveUp()
    books.operators.reset()
    return recoverHolds(books)
  }
}

const isFull = (fault: unknown): boolean => (fault as { code?: string }).code === 'SQLITE_FULL'

/** An upgrade that goes wrong must not be the end of the books. */
function backUpBefore(path: string, version: number): void {
  const folder = join(dirname(path), 'backups')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Of a start that was killed here: whoever starts it again and again must not fill the disk with them.
  for (const name of readdirSync(folder).filter(one => one.endsWith('.part'))) rmSync(join(folder, name))
  const time = new Date().toISOString().replaceAll(':', '-')
  copyDatabase(db, join(folder, `schema-${version}-${time}.db`))
}

const tooLate: Done = [null, { message: 'too late', full: false }]
const isLate = (job: Job): boolean => Date.now() >= job.dueMs

function runJob(job: Job): Done {
  if (isLate(job)) return tooLate
  if (ballast.full && takesRoom(job)) return [null, { message: 'no room on the disk', full: true }]
  // The name and its input come as a pair from Writer.run, which is typed; the message between has lost that.
  const run = operations.run[job.name] as (input: Input<OperationName>) => { done: string }
  if (isAudited(job.name)) return [runAudited(job, () => run(job.input))]
  return [run(ballast.full ? lean(job) : job.input)]
}

/** Also the words of a response that is changed: without them the change would not be true. */
const takesRoom = ({ name, input }: Job): boolean =>
  beginning.has(name) || (name === 'changeResponse' && (input as Input<'changeResponse'>).sealed !== null)

/** What room is left on a full disk is for settles, and not for the words that would be kept with them. */
function lean({ name, input }: Job): Input<OperationName> {
  if (name === 'changeTask') return { ...(input as Input<'changeTask'>), sealed: null }
  if (name !== 'settle') return input
  const settle = input as Input<'settle'>
  return typeof settle.idempotency === 'object' ? { ...settle, idempotency: { sealed: null } } : settle
}

/** What ends a hold goes first, so that its money is there for those that begin. */
function runAll(jobs: readonly Job[]): readonly Done[] {
  const done = new Array<Done>(jobs.length)
  for (let at = 0; at < jobs.length; at++) if (jobs[at]!.name !== 'hold') done[at] = runJob(jobs[at]!)
  for (let at = 0; at < jobs.length; at++) if (jobs[at]!.name === 'hold') done[at] = runJob(jobs[at]!)
  operations.balance()
  return done
}

/** All of it or nothing, also of what is remembered beside the file: what was rolled back has moved no money. */
function commit(jobs: readonly Job[]): readonly Done[] {
  try {
    return db.transaction(() => runAll(jobs)).immediate()
  } catch (fault) {
    operations.reset()
    throw fault
  }
}

function runBatch(jobs: readonly Job[]): readonly Done[] {
  try {
    return commit(jobs)
  } catch {
    // One of them failed in a way we did not foresee. Alone, each gets its own verdict. Where it was the file that
    // could not be had for seconds, those seconds must not pass once for each of them.
    return jobs.map(job => (isLate(job) ? tooLate : runAlone(job)))
  }
}

function runAlone(job: Job): Done {
  try {
    return commit([job])[0]!
  } catch (fault) {
    const full = isFull(fault)
    if (full && !ballast.full) {
      ballast.giveUp()
      return runAlone(job)
    }
    return [null, { message: fault instanceof Error ? fault.message : 'unknown fault', full }]
  }
}

self.onmessage = (event: MessageEvent<ToWriter>) => {
  const message = event.data
  try {
    if (typeof message === 'string') return answer(JSON.stringify(runBatch(JSON.parse(message) as Job[])))
    if ('open' in message) return open(message.open)
    // The last connection to close would do so by itself, but a reader may be let go of later than it was closed.
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    answer({ closed: true })
  } catch (fault) {
    const detail = fault instanceof Error ? fault.message : 'unknown fault'
    answer({ failed: fault instanceof StoreError ? detail : `The database cannot be used: ${detail}.` })
  }
}
