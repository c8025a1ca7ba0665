// Sends operations to the writer thread. All operations that are queued when the previous commit ends go into the next
// one (group commit), so a busy gateway pays one fsync for many calls, and an idle one does not wait.
//
// The writer does not use Thread (base/threads), for two reasons. A batch is one string in each direction, which the
// runtime passes on without cloning an object, and its operations need no second promise. And a writer thread that has
// died must not be started again with operations whose outcome is unknown: they time out, and `onFault` is called.

import { dirname } from 'node:path'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { AuditActor, ExpectedVersion, StaleVersion } from '../audit-log/audited-operations.ts'
import type { AuditedName } from '../audit-log/plans.ts'
import { StoreError } from './database.ts'
import { refuseMovedData } from './moved-folder.ts'
import type { OperationInput, OperationName, OperationResult } from './operations.ts'
import { refusableOperations } from './operations.ts'
import type { FromWriter, ToWriter, WriteJob, WriteReply, WriterOptions, WriterStart } from './writer-messages.ts'

type Resolve = (result: unknown) => void

interface QueuedOperation {
  readonly job: WriteJob
  readonly sinceMs: number
  /** Its caller has got a timeout error, so nobody waits for its result any more. */
  isAbandoned: boolean
  readonly resolve: Resolve
  reject(fault: Error): void
}

const TIMEOUT_CHECK_MS = 250
/** The writer is unhealthy when a batch takes longer than this, and for this long after the database failed. */
const UNHEALTHY_MS = 1_000
/** Returns how long an operation has waited that was queued at the given time. Tests replace it. */
export type WaitMeasure = (sinceMs: number) => number

export const measureWait: WaitMeasure = sinceMs => performance.now() - sinceMs

export class Writer {
  readonly #thread: Worker
  /** Used only to decide whether the queue is too old for new operations, not to time out queued ones. */
  readonly #waitedMs: WaitMeasure
  #queue: QueuedOperation[] = []
  /** The operations that the thread is running; empty when it is idle. */
  #batch: readonly QueuedOperation[] = []
  #busy = false
  #batchSentMs = 0
  #isDiskFull = false
  #failedMs = Number.NEGATIVE_INFINITY
  #onIdle: (() => void) | undefined
  #timer: ReturnType<typeof setInterval> | undefined

  /** An operation that takes longer is rejected. */
  readonly #msMax: number

  private constructor(thread: Worker, waitedMs: WaitMeasure, msMax: number) {
    this.#thread = thread
    this.#waitedMs = waitedMs
    this.#msMax = msMax
  }

  /** Opens and migrates the database and recovers the holds of a crash. Nothing else may be using the file. */
  static async open(
    options: WriterOptions,
    onFault: (detail: string) => void,
    waitedMs = measureWait,
    msMax: number = bounds.settleMsMax,
  ): Promise<[Writer, WriterStart]> {
    refuseMovedData(dirname(options.path))
    const thread = new Worker(new URL('./writer-thread.ts', import.meta.url).href)
    const writer = new Writer(thread, waitedMs, msMax)
    const start = await new Promise<WriterStart>((resolve, reject) => {
      thread.onmessage = (event: MessageEvent<FromWriter>) => {
        const message = event.data
        if (typeof message === 'string') return
        if ('ready' in message) resolve(message.ready)
        else if ('failed' in message) reject(new StoreError(message.failed))
      }
      thread.onerror = event => reject(new Error(event.message))
      thread.postMessage({ open: options } satisfies ToWriter)
    }).catch(fault => {
      thread.terminate()
      throw fault
    })
    thread.onmessage = (event: MessageEvent<FromWriter>) => {
      const message = event.data
      if (typeof message === 'string') writer.#receive(message)
      else if ('failed' in message) onFault(message.failed) // an error of the thread itself, not of a batch
    }
    thread.onerror = event => onFault(event.message)
    return [writer, start]
  }

  get queuedCount(): number {
    return this.#queue.length
  }

  /** Whether the disk was full at the last batch. */
  get isDiskFull(): boolean {
    return this.#isDiskFull
  }

  /** Called for each finished batch, with the number of its operations and the time from sending it to its results. */
  onBatch: ((operations: number, ms: number) => void) | undefined

  /** How long the current batch has taken so far; zero when the writer is idle. */
  get busyMs(): number {
    return this.#busy ? performance.now() - this.#batchSentMs : 0
  }

  /** How long the oldest operation has waited, in the queue or in the current batch. */
  get oldestWaitMs(): number {
    const oldest = this.#batch[0] ?? this.#queue[0]
    return oldest === undefined ? 0 : this.#waitedMs(oldest.sinceMs)
  }

  /** Whether the writer keeps up: the disk has room, the database did not fail at the last batch, and the current one is not slow. */
  get isHealthy(): boolean {
    if (this.#isDiskFull || performance.now() < this.#failedMs + UNHEALTHY_MS) return false
    return this.busyMs < UNHEALTHY_MS
  }

  /**
   * Resolves when the operation is durable. Rejects when that takes too long, although the operation may still be
   * carried out: operations can be repeated, and the next start recovers open holds. When the queue is full,
   * refusable operations are refused without being queued; operations that end a hold are always queued. Audited
   * operations name their actor, and with an expected version they change nothing when the row has another version.
   */
  run<Name extends Exclude<OperationName, AuditedName>>(
    name: Name,
    input: OperationInput<Name>,
  ): Promise<OperationResult<Name>>
  run<Name extends AuditedName>(
    name: Name,
    input: OperationInput<Name>,
    by: AuditActor & ExpectedVersion,
  ): Promise<OperationResult<Name> | StaleVersion>
  run<Name extends AuditedName>(name: Name, input: OperationInput<Name>, by: AuditActor): Promise<OperationResult<Name>>
  run<Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    by?: AuditActor & Partial<ExpectedVersion>,
  ): Promise<OperationResult<Name>> {
    const sinceMs = performance.now()
    if (refusableOperations.has(name) && this.#isBehind) {
      return Promise.reject(new Refusal('overloaded', 'the ledger queue is full', { retryAfterMs: 1_000 }))
    }
    return new Promise((resolve, reject) => {
      const dueMs = Date.now() + this.#msMax
      const job = by === undefined ? { name, input, dueMs } : { name, input, dueMs, by }
      this.#queue.push({ job, sinceMs, isAbandoned: false, resolve: resolve as Resolve, reject })
      this.#timer ??= setInterval(() => this.#rejectLate(), TIMEOUT_CHECK_MS)
      if (this.#busy) return
      this.#busy = true
      this.#batchSentMs = sinceMs
      // Operations of all requests that this turn of the event loop reads go into one batch.
      setImmediate(() => this.#send())
    })
  }

  get #isBehind(): boolean {
    const oldest = this.#queue[0]
    if (oldest === undefined) return false
    return this.#queue.length >= bounds.ledgerQueueMax || this.#waitedMs(oldest.sinceMs) > bounds.ledgerQueueMsMax
  }

  /** Waits for all queued operations, but not longer than the settle timeout, then closes the file. */
  async close(): Promise<void> {
    const giveUpTimer = setTimeout(() => this.#onIdle?.(), bounds.settleMsMax)
    if (this.#busy) await new Promise<void>(resolve => (this.#onIdle = resolve))
    clearTimeout(giveUpTimer)
    await new Promise<void>(resolve => {
      this.#thread.onmessage = event => event.data?.closed && resolve()
      this.#thread.postMessage({ close: true } satisfies ToWriter)
      setTimeout(resolve, bounds.settleMsMax).unref()
    })
    clearInterval(this.#timer)
    this.#thread.terminate()
  }

  #send(): void {
    this.#batch = this.#queue.slice(0, bounds.ledgerBatchMax)
    this.#queue = this.#queue.slice(bounds.ledgerBatchMax)
    this.#batchSentMs = performance.now()
    this.#thread.postMessage(JSON.stringify(this.#batch.map(({ job }) => job)) satisfies ToWriter)
  }

  #receive(message: string): void {
    const results = JSON.parse(message) as WriteReply[]
    this.#isDiskFull = results.some(([, fault]) => fault?.isDiskFull === true)
    if (results.every(([, fault]) => fault?.isOfDatabase === true)) this.#failedMs = performance.now()
    const batch = this.#batch
    this.#batch = []
    this.onBatch?.(batch.length, performance.now() - this.#batchSentMs)
    if (this.#queue.length > 0) this.#send()
    else {
      this.#busy = false
      this.#onIdle?.()
    }
    batch.forEach((operation, index) => finish(operation, results[index]!))
  }

  #rejectLate(): void {
    // A little later than the thread itself gives up, so that a result of the last moment still arrives.
    const earliestMs = performance.now() - this.#msMax - 2 * TIMEOUT_CHECK_MS
    for (const operation of [...this.#batch, ...this.#queue]) {
      if (operation.sinceMs > earliestMs) break // the queue is ordered by arrival
      if (operation.isAbandoned) continue
      operation.isAbandoned = true
      operation.reject(new Refusal('storage_away', 'the ledger took too long', { retryAfterMs: 1_000 }))
    }
    if (this.#busy) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

function finish(operation: QueuedOperation, [result, fault]: WriteReply): void {
  if (operation.isAbandoned) return
  if (fault === undefined) operation.resolve(result)
  else
    operation.reject(
      new Refusal(fault.isDiskFull ? 'storage_full' : 'storage_away', fault.message, { retryAfterMs: 1_000 }),
    )
}
