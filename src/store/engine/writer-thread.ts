// The thread that owns the only writing connection. Each message is a batch of jobs. A batch is one transaction, and
// its results are sent back when it is on the disk.

import type { Database } from 'bun:sqlite'
import { SQLiteError } from 'bun:sqlite'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isAudited } from '../audit-log/audited-operations.ts'
import type { Books } from '../ledger/books.ts'
import { openBooks } from '../ledger/books.ts'
import { recoverHolds } from '../ledger/recovery.ts'
import { Ballast } from './ballast.ts'
import { copyDatabase, migrate, openWriter, StoreError } from './database.ts'
import { storageMessage } from './folder-error.ts'
import type { OperationRunner } from './operation-runner.ts'
import { buildOperations } from './operation-runner.ts'
import type { OperationInput, OperationName, OperationResult } from './operations.ts'
import { refusableOperations } from './operations.ts'
import type { FromWriter, ToWriter, WriteJob, WriteReply, WriterOptions } from './writer-messages.ts'

declare const self: Worker

let db: Database
let ballast: Ballast
let operations: OperationRunner

const reply = (message: FromWriter): void => postMessage(message)

function open({ path, ballastBytes, databaseBytesMax, responsesBytesMax }: WriterOptions): void {
  db = openWriter(path)
  migrate(db, { backUp: version => backUpBefore(path, version) })
  const books = openBooks(db)
  ballast = new Ballast(db, { folder: dirname(path), bytes: ballastBytes, databaseBytesMax })
  const recovered = recover(books)
  operations = buildOperations(books, { responsesBytesMax })
  const last = db
    .query(
      `SELECT max((SELECT coalesce(max(call_id), 0) FROM record), (SELECT coalesce(max(call_id), 0) FROM hold),
         (SELECT coalesce(max(ref), 0) FROM transfer), (SELECT coalesce(max(id), 0) FROM api_key),
         (SELECT coalesce(max(id), 0) FROM account), (SELECT coalesce(max(id), 0) FROM code),
         (SELECT coalesce(max(call_id), 0) FROM task), (SELECT coalesce(max(id), 0) FROM person),
         (SELECT coalesce(max(id), 0) FROM session), (SELECT coalesce(max(id), 0) FROM invitation),
         (SELECT coalesce(max(id), 0) FROM webhook), (SELECT coalesce(max(id), 0) FROM service_token)) AS last`,
    )
    .get() as { last: bigint }
  reply({ ready: { recovered, lastId: Number(last.last) } })
}

/** Ends the holds that a crash left open. On a full disk it uses the space of the ballast file for this. */
function recover(books: Books): number {
  try {
    return recoverHolds(books)
  } catch (fault) {
    if (!isFull(fault)) throw fault
    ballast.release()
    books.operators.reset()
    return recoverHolds(books)
  }
}

const isFull = (fault: unknown): boolean => (fault as { code?: string }).code === 'SQLITE_FULL'

/** Not where the rows would have broken a rule of their table, nor where the operation itself has thrown. */
const isOfDatabase = (fault: unknown): boolean =>
  fault instanceof SQLiteError && !fault.code?.startsWith('SQLITE_CONSTRAINT')

/** Copies the database before a migration, so that a failed upgrade cannot destroy the ledger. */
function backUpBefore(path: string, version: number): void {
  const folder = join(dirname(path), 'backups')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Partial copies come from starts that were killed here. Repeated starts must not fill the disk with them.
  for (const name of readdirSync(folder).filter(file => file.endsWith('.part'))) rmSync(join(folder, name))
  const time = new Date().toISOString().replaceAll(':', '-')
  copyDatabase(db, join(folder, `schema-${version}-${time}.db`))
}

const tooLate: WriteReply = [null, { message: 'too late', isDiskFull: false, isOfDatabase: true }]
const isLate = (job: WriteJob): boolean => Date.now() >= job.dueMs

function runJob(job: WriteJob): WriteReply {
  if (isLate(job)) return tooLate
  if (ballast.isDiskFull && needsSpace(job)) {
    return [null, { message: 'no room on the disk', isDiskFull: true, isOfDatabase: true }]
  }
  if (isAudited(job.name)) return [operations.runAudited(job)]
  // Writer.run has checked that the input fits the name; the JSON message has lost that type.
  const run = operations.run[job.name] as (input: OperationInput<OperationName>) => OperationResult<OperationName>
  return [run(ballast.isDiskFull ? withoutOptionalBytes(job) : job.input)]
}

/** A changed response with new content needs space too: without the content the change would be wrong. */
const needsSpace = ({ name, input }: WriteJob): boolean =>
  refusableOperations.has(name) ||
  (name === 'changeResponse' && (input as OperationInput<'changeResponse'>).sealed !== null)

/** Removes stored content from a job: the space that is left on a full disk is for settling calls. */
function withoutOptionalBytes({ name, input }: WriteJob): OperationInput<OperationName> {
  if (name === 'changeTask') return { ...(input as OperationInput<'changeTask'>), sealed: null }
  if (name !== 'settle') return input
  const settle = input as OperationInput<'settle'>
  return typeof settle.idempotency === 'object' ? { ...settle, idempotency: { sealed: null } } : settle
}

/** Runs new holds last, so that the money of holds that end in this batch is available to them. */
function runAll(jobs: readonly WriteJob[]): readonly WriteReply[] {
  const replies = new Array<WriteReply>(jobs.length)
  for (let i = 0; i < jobs.length; i++) if (jobs[i]!.name !== 'hold') replies[i] = runJob(jobs[i]!)
  for (let i = 0; i < jobs.length; i++) if (jobs[i]!.name === 'hold') replies[i] = runJob(jobs[i]!)
  operations.writeOperatorBalances()
  return replies
}

/** Commits all jobs or none. After a rollback the state in memory is reset too, because no money has moved. */
function commit(jobs: readonly WriteJob[]): readonly WriteReply[] {
  try {
    return db.transaction(() => runAll(jobs)).immediate()
  } catch (fault) {
    operations.reset()
    throw fault
  }
}

function runBatch(jobs: readonly WriteJob[]): readonly WriteReply[] {
  try {
    return commit(jobs)
  } catch {
    // One job failed unexpectedly, so each job is tried alone and gets its own result. Where the file was locked for
    // seconds, late jobs are skipped so that the wait is not repeated for each of them.
    return jobs.map(job => (isLate(job) ? tooLate : runAlone(job)))
  }
}

function runAlone(job: WriteJob): WriteReply {
  try {
    return commit([job])[0]!
  } catch (fault) {
    const full = isFull(fault)
    if (full && !ballast.isDiskFull) {
      ballast.release()
      return runAlone(job)
    }
    const message = fault instanceof Error ? fault.message : 'unknown error'
    return [null, { message, isDiskFull: full, isOfDatabase: isOfDatabase(fault) }]
  }
}

let isIndexFaultReported = false

/** Searches find rows without their entries too. So on a full disk, or after an error, entries are written later. */
function writeIndexes(): void {
  if (ballast.isDiskFull) return
  try {
    operations.writeIndexes()
    isIndexFaultReported = false
  } catch (fault) {
    if (isIndexFaultReported) return // it is tried again after each batch
    isIndexFaultReported = true
    process.stderr.write(`weir: the indexes of records cannot be written, so searches get slower: ${String(fault)}\n`)
  }
}

function failureMessage(fault: unknown): string {
  if (fault instanceof StoreError) return fault.message
  if (!(fault instanceof Error)) return 'The database cannot be used: unknown error.'
  return storageMessage(fault) ?? `The database cannot be used: ${fault.message}.`
}

self.onmessage = (event: MessageEvent<ToWriter>) => {
  const message = event.data
  try {
    if (typeof message === 'string') {
      reply(JSON.stringify(runBatch(JSON.parse(message) as WriteJob[])))
      return writeIndexes()
    }
    if ('open' in message) return open(message.open)
    // SQLite checkpoints when the last connection closes, but a closed reader may be released only later.
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    reply({ closed: true })
  } catch (fault) {
    reply({ failed: failureMessage(fault) })
  }
}
