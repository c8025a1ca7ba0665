// Sends the operations of calls to PostgreSQL. All operations that are queued when the previous batch ends go into the
// next one (group commit), over one connection: bigger batches are worth more than batches that run side by side.
//
// A batch has one operation of each call at most. The others of the call wait for the next batch, so that the operations
// of a call are carried out in the order in which they came; those of different calls are not.
//
// A batch waits for the locks of all of its accounts. Should one of them be locked for long, the batch fails, and from then
// on its calls are left out of the batches until it is free again.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { HotName, OperationInput } from '../engine/operations.ts'
import { refusableOperations } from '../engine/operations.ts'
import type { WaitMeasure } from '../engine/writer.ts'
import { measureWait } from '../engine/writer.ts'
import { sqlStateOf, storageAway } from './faults.ts'
import type { BatchJob, BatchOwner, BatchResult, EncodedJob } from './ledger-batch.ts'
import { batchStatement, encodeJob, readUnusualResults, resultOfJob, sizeOfJob } from './ledger-batch.ts'
import { lockedCallsStatement, readLockedCalls } from './ledger-locks.ts'
import type { PostgresPool } from './pools.ts'

export interface LedgerWriterOptions {
  readonly owner: BatchOwner
  /** Called once when another process has taken this one for dead: nothing can be written any more. */
  readonly onFenced: () => void
  /** A batch that fails is sent again this long after it was sent, or at once if it took longer. */
  readonly retryMs?: number
  /** Only for tests. */
  readonly waitedMs?: WaitMeasure
  /** The clock of the ledger, only for tests. Without it, the clock of the database counts. */
  readonly nowMs?: () => number
}

interface QueuedJob {
  readonly job: BatchJob
  readonly encoded: EncodedJob
  readonly sinceMs: number
  /** It was sent, and no answer came: it may have been carried out. */
  isUnknown: boolean
  /** Its caller has got a timeout error, so nobody waits for its result any more. */
  isAbandoned: boolean
  /** Its account was locked when it should have been sent. */
  isLocked: boolean
  resolve(result: unknown): void
  reject(fault: Error): void
}

const RETRY_MS = 1_000
const TIMEOUT_CHECK_MS = 250
/** The pause while nothing is queued but calls of locked accounts. */
const LOCKED_MS = 100
/**
 * A batch with more characters gets no further operations. An answer that is stored for an idempotency key has millions,
 * and a batch with many of them would take longer than all of its calls may wait.
 */
const BATCH_CHARS_MAX = 4_000_000
/** The writer is unhealthy when a batch takes longer than this, and for this long after a batch failed. */
const UNHEALTHY_MS = 1_000

/** What an error of the database means for the batch that got it. */
type FaultKind =
  /** Another process has fenced this one. */
  | 'fenced'
  /** The batch may have been committed. */
  | 'unknown'
  /** The batch was not committed, and may be sent again. */
  | 'busy'
  /** As `busy`. One of its accounts may be locked for long. */
  | 'locked'
  | 'full'
  /** One of the operations is wrong. */
  | 'refused'

function kindOf(fault: unknown): FaultKind {
  const state = sqlStateOf(fault)
  if (state === 'WR001') return 'fenced'
  if (state === undefined || /^(08|57P)/.test(state)) return 'unknown'
  if (state === '53100') return 'full'
  if (state === '55P03') return 'locked'
  // Wrong data, a broken constraint, or an error that a function of ours raised. All else is no fault of the operations:
  // a deadlock, a statement that took too long, a server that has become read-only …
  return /^(21|22|23|54|P0)/.test(state) ? 'refused' : 'busy'
}

export class LedgerWriter {
  readonly #pool: Pick<PostgresPool, 'runAlone'>
  readonly #options: LedgerWriterOptions
  readonly #waitedMs: WaitMeasure
  #queue: QueuedJob[] = []
  #batch: readonly QueuedJob[] = []
  #running: Promise<void> | undefined
  #isFenced = false
  #isFull = false
  #mayBeLocked = false
  #isClosed = false
  #sentMs = 0
  /** The number of the last batch. A batch that is sent again has another number. */
  #number = 0
  #failedMs = Number.NEGATIVE_INFINITY
  #timer: ReturnType<typeof setInterval> | undefined

  /** The pool should have one connection, which nothing else uses: a slow read would make settles wait. */
  constructor(pool: Pick<PostgresPool, 'runAlone'>, options: LedgerWriterOptions) {
    this.#pool = pool
    this.#options = options
    this.#waitedMs = options.waitedMs ?? measureWait
  }

  get queuedCount(): number {
    return this.#queue.length
  }

  /** Called for each finished batch, with the number of its operations and the time until its results. */
  onBatch: ((operations: number, ms: number) => void) | undefined

  /** Whether the writer keeps up: the last batch did not fail, and the current one is not slow. */
  get isHealthy(): boolean {
    if (this.#isFenced || performance.now() < this.#failedMs + UNHEALTHY_MS) return false
    return this.#batch.length === 0 || performance.now() - this.#sentMs < UNHEALTHY_MS
  }

  /** Whether the disk of the database was full at the last batch. */
  get isDiskFull(): boolean {
    return this.#isFull
  }

  /**
   * How long the oldest operation has waited, in the queue or in the current batch. Those of locked accounts do not count:
   * they say nothing about the others, which must not be refused because of them.
   */
  get oldestWaitMs(): number {
    const isFree = ({ isLocked }: QueuedJob): boolean => !isLocked
    const oldest = this.#batch.find(isFree) ?? this.#queue.find(isFree)
    return oldest === undefined ? 0 : this.#waitedMs(oldest.sinceMs)
  }

  /**
   * Resolves when the operation is durable. Rejects when that takes too long, although the operation may still be
   * carried out: operations can be repeated, and a hold is removed again.
   */
  run<Name extends HotName>(name: Name, input: OperationInput<Name>): Promise<BatchResult<Name>> {
    if (this.#isFenced) return Promise.reject(storageAway('this process is fenced'))
    if (this.#isClosed) return Promise.reject(storageAway('closed'))
    if (refusableOperations.has(name) && this.#isBehind) {
      return Promise.reject(new Refusal('overloaded', 'the ledger queue is full', { retryAfterMs: 1_000 }))
    }
    return new Promise((resolve, reject) => {
      // The types of name and input belong together, which TypeScript cannot see in a union.
      this.#add({ name, input } as BatchJob, resolve as (result: unknown) => void, reject)
    })
  }

  /** Resolves when nothing is queued any more. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running
  }

  /** Waits for all queued operations, but not longer than the settle timeout. */
  async close(): Promise<void> {
    const giveUp = setTimeout(() => this.#giveUp(), bounds.settleMsMax)
    await this.idle()
    clearTimeout(giveUp)
    this.#isClosed = true
  }

  #giveUp(): void {
    this.#isClosed = true
    for (const queued of this.#queue) queued.reject(storageAway('closed'))
    this.#queue = []
  }

  #add(job: BatchJob, resolve: (result: unknown) => void, reject: (fault: Error) => void): void {
    const encoded = encodeJob(job)
    this.#queue.push({
      job,
      encoded,
      sinceMs: performance.now(),
      isUnknown: false,
      isAbandoned: false,
      isLocked: false,
      resolve,
      reject,
    })
    this.#timer ??= setInterval(() => this.#rejectLate(), TIMEOUT_CHECK_MS)
    this.#running ??= this.#drain()
  }

  get #isBehind(): boolean {
    if (this.#queue.length >= bounds.ledgerQueueMax) return true
    const oldest = this.#queue.find(({ isLocked }) => !isLocked)
    return oldest !== undefined && this.#waitedMs(oldest.sinceMs) > bounds.ledgerQueueMsMax
  }

  async #drain(): Promise<void> {
    // Operations of all requests that this turn of the event loop reads go into one batch.
    await new Promise(resolve => setImmediate(resolve))
    while (this.#queue.length > 0) {
      this.#batch = this.#take()
      this.#sentMs = performance.now()
      if (this.#mayBeLocked && this.#batch.length > 0) await this.#setLockedAside()
      if (this.#batch.length > 0) await this.#commit(this.#batch)
      this.#batch = []
    }
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#running = undefined
  }

  #rejectLate(): void {
    for (const queued of [...this.#batch, ...this.#queue]) {
      if (queued.isAbandoned || queued.job.name === 'cancel') continue
      if (this.#waitedMs(queued.sinceMs) < bounds.settleMsMax) continue
      queued.isAbandoned = true
      queued.reject(storageAway('the ledger took too long'))
    }
  }

  /** Takes the next batch from the queue: the oldest operation of each call, without those that nobody waits for. */
  #take(): QueuedJob[] {
    this.#rejectLate()
    const batch: QueuedJob[] = []
    const rest: QueuedJob[] = []
    const calls = new Set<number>()
    let chars = 0
    for (const queued of this.#queue) {
      const { callId } = queued.encoded
      const isFull = batch.length >= bounds.ledgerBatchMax || chars > BATCH_CHARS_MAX
      if (calls.has(callId) || isFull) rest.push(queued)
      else if (!queued.isAbandoned) batch.push(queued)
      else if (queued.isUnknown && queued.job.name === 'hold') batch.push(cancelOf(callId))
      else continue
      if (!isFull && !calls.has(callId)) chars += sizeOfJob(queued.encoded)
      calls.add(callId)
    }
    this.#queue = rest
    return batch
  }

  /** Moves the calls of locked accounts from the batch to the end of the queue, so that all others pass them. */
  async #setLockedAside(): Promise<void> {
    const batch = this.#batch
    try {
      const jobs = batch.map(({ encoded }) => encoded)
      const calls = readLockedCalls(await this.#pool.runAlone(lockedCallsStatement(jobs)))
      // With further operations of the same calls, which stay behind them.
      for (const queued of batch) queued.isLocked = false
      for (const queued of [...batch, ...this.#queue]) queued.isLocked ||= calls.has(queued.encoded.callId)
      this.#batch = batch.filter(({ isLocked }) => !isLocked)
      this.#putBack(batch.filter(({ isLocked }) => isLocked))
      this.#queue = [
        ...this.#queue.filter(({ isLocked }) => !isLocked),
        ...this.#queue.filter(({ isLocked }) => isLocked),
      ]
      this.#mayBeLocked = this.#queue.at(-1)?.isLocked ?? false
    } catch (fault) {
      await this.#fail(batch, fault)
      this.#batch = []
      return
    }
    if (this.#batch.length === 0) await Bun.sleep(LOCKED_MS)
  }

  async #commit(batch: readonly QueuedJob[]): Promise<void> {
    const { owner, nowMs } = this.#options
    try {
      const jobs = batch.map(({ encoded }) => encoded)
      const statement = batchStatement(jobs, { owner, number: ++this.#number, testMs: nowMs?.() })
      const unusual = readUnusualResults(await this.#pool.runAlone(statement))
      this.#isFull = false
      this.onBatch?.(batch.length, performance.now() - this.#sentMs)
      for (const queued of batch) {
        const result = resultOfJob(queued.job, unusual.get(queued.encoded.callId))
        queued.resolve(queued.isUnknown ? asFirst(queued.job, result) : result)
        if (queued.isAbandoned && queued.job.name === 'hold') this.#queue.unshift(cancelOf(queued.encoded.callId))
      }
    } catch (fault) {
      await this.#fail(batch, fault)
    }
  }

  async #fail(batch: readonly QueuedJob[], fault: unknown): Promise<void> {
    const kind = kindOf(fault)
    const detail = fault instanceof Error ? fault.message : 'unknown error'
    switch (kind) {
      case 'fenced':
        return this.#becomeFenced(batch)
      case 'unknown':
      case 'busy':
      case 'locked': {
        if (kind === 'unknown') for (const queued of batch) queued.isUnknown = true
        if (kind === 'locked') this.#mayBeLocked = true
        this.#failedMs = performance.now()
        // A batch that took long has used up most of the time of its callers.
        const dueMs = this.#sentMs + (this.#options.retryMs ?? RETRY_MS)
        await Bun.sleep(Math.max(0, dueMs - performance.now()))
        return this.#putBack(batch)
      }
      case 'full':
        this.#isFull = true
        this.#failedMs = performance.now()
        // After `storage_full` the caller knows that nothing is reserved. An earlier try may have reserved something.
        for (const queued of batch)
          queued.reject(
            queued.isUnknown ? storageAway(detail) : new Refusal('storage_full', detail, { retryAfterMs: 1_000 }),
          )
        return
      case 'refused': {
        if (batch.length === 1) return batch[0]!.reject(storageAway(detail))
        // In halves: one wrong operation among 256 costs 16 more transactions, and not 256.
        const middle = batch.length >> 1
        await this.#commit(batch.slice(0, middle))
        await this.#commit(batch.slice(middle))
      }
    }
  }

  #putBack(batch: readonly QueuedJob[]): void {
    if (this.#isClosed) for (const queued of batch) queued.reject(storageAway('closed'))
    else this.#queue = [...batch, ...this.#queue]
  }

  /** Another process settles the holds of this one. */
  #becomeFenced(batch: readonly QueuedJob[]): void {
    const all = [...batch, ...this.#queue]
    this.#queue = []
    const isNew = !this.#isFenced
    this.#isFenced = true
    for (const queued of all) queued.reject(storageAway('this process is fenced'))
    if (isNew) this.#options.onFenced()
  }
}

/** The caller of the hold was refused and will not settle it, so it must not stay. */
function cancelOf(callId: number): QueuedJob {
  const job = { name: 'cancel', input: { callId } } as const
  const ignore = (): void => {}
  return {
    ...{ job, encoded: encodeJob(job), sinceMs: performance.now(), isUnknown: false, isAbandoned: false },
    ...{ isLocked: false, resolve: ignore, reject: ignore },
  }
}

/** An operation that is repeated and finds its own result has succeeded the first time. */
function asFirst({ name, input }: BatchJob, result: BatchResult<HotName> | undefined): unknown {
  if (result?.done !== 'exists') return result
  if (name === 'record') return { done: 'recorded' }
  if (name !== 'settle' || !('outcome' in result) || result.outcome !== input.record.outcome) return result
  return { done: 'settled', charged: result.charged, shortfall: result.shortfall }
}
