// The writer on PostgreSQL. It promises the same as the one on SQLite (engine/writer.ts). The operations of calls go into
// batches (ledger.ts), all others run in transactions of their own (cold-operations.ts).

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { AuditActor, ExpectedVersion, StaleVersion } from '../audit-log/audited-operations.ts'
import type { AuditedName } from '../audit-log/plans.ts'
import type { ColdName, HotName, OperationInput, OperationName, OperationResult } from '../engine/operations.ts'
import { refusableOperations } from '../engine/operations.ts'
import type { StoreWriter } from '../engine/store-engine.ts'
import type { ColdOptions } from './cold-operations.ts'
import { isOfAccount, PostgresOperations } from './cold-operations.ts'
import { isDiskFull, refusalOf, storageAway } from './faults.ts'
import type { LedgerWriter } from './ledger.ts'
import type { PostgresPool } from './pools.ts'
import { WorkQueue } from './work-queue.ts'

/** Operations that take the lock of all processes run one by one, so more connections would only wait. */
const ALONE_AT_ONCE = 1
const OF_ACCOUNTS_AT_ONCE = 3
/** The pool of these operations should have this many connections. */
export const COLD_CONNECTIONS = ALONE_AT_ONCE + OF_ACCOUNTS_AT_ONCE

const hotNames: ReadonlySet<OperationName> = new Set<HotName>(['hold', 'extend', 'settle', 'checkpoint', 'record'])
const isHot = (name: OperationName): name is HotName => hotNames.has(name)

const tooLate = (): Refusal => storageAway('the ledger took too long')
const queueOf = (atOnce: number, waitMsMax: number): WorkQueue => new WorkQueue({ atOnce, waitMsMax, late: tooLate })

export interface PostgresWriterOptions extends Omit<ColdOptions, 'slot'> {
  readonly ledger: LedgerWriter
  /** For all operations that are not those of calls. */
  readonly pool: Pick<PostgresPool, 'transact' | 'runAlone'>
  /** How long such an operation may take. */
  readonly msMax?: number
}

export class PostgresWriter implements StoreWriter {
  readonly #cold: PostgresOperations
  readonly #alone: WorkQueue
  readonly #ofAccounts: WorkQueue
  readonly #msMax: number
  #ledger: LedgerWriter
  #isColdFull = false

  /** Called for each finished batch, with the number of its operations and the time from sending it to its results. */
  onBatch: ((operations: number, ms: number) => void) | undefined

  constructor({ ledger, pool, msMax = bounds.settleMsMax, ...options }: PostgresWriterOptions) {
    this.#msMax = msMax
    this.#alone = queueOf(ALONE_AT_ONCE, msMax)
    this.#ofAccounts = queueOf(OF_ACCOUNTS_AT_ONCE, msMax)
    this.#cold = new PostgresOperations(pool, { ...options, slot: 0 })
    this.#ledger = ledger
    this.use(ledger)
  }

  /** Replaces the writer of the operations of calls, after this process was fenced and has joined again. */
  use(ledger: LedgerWriter): void {
    this.#ledger = ledger
    ledger.onBatch = (operations, ms) => this.onBatch?.(operations, ms)
  }

  get queuedCount(): number {
    return this.#ledger.queuedCount + this.#alone.waitingCount + this.#ofAccounts.waitingCount
  }

  /** How long the oldest operation has waited: of those of calls also in the current batch. */
  get oldestWaitMs(): number {
    return Math.max(this.#ledger.oldestWaitMs, this.#alone.waitedMs, this.#ofAccounts.waitedMs)
  }

  /** Whether the disk of the database was full at the last batch or operation. */
  get isDiskFull(): boolean {
    return this.#ledger.isDiskFull || this.#isColdFull
  }

  /** Whether holds and settles are carried out in time. */
  get isHealthy(): boolean {
    return this.#ledger.isHealthy
  }

  /** Resolves when the operation is durable. Rejects with a Refusal; then the operation may still be carried out. */
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
    // The types of name and input belong together, which TypeScript cannot see in a union.
    const result = isHot(name)
      ? this.#ledger.run(name as HotName, input as OperationInput<HotName>)
      : this.#runCold(name as ColdName, input as OperationInput<ColdName>, by)
    return (result as Promise<OperationResult<Name>>).catch(fault => {
      throw refusalOf(fault)
    })
  }

  #runCold(
    name: ColdName,
    input: OperationInput<ColdName>,
    by: (AuditActor & Partial<ExpectedVersion>) | undefined,
  ): Promise<unknown> {
    const queue = isOfAccount(name) ? this.#ofAccounts : this.#alone
    const isBehind = queue.waitingCount >= bounds.ledgerQueueMax || queue.waitedMs > bounds.ledgerQueueMsMax
    if (isBehind && refusableOperations.has(name)) {
      return Promise.reject(new Refusal('overloaded', 'the ledger queue is full', { retryAfterMs: 1_000 }))
    }
    return inTime(
      queue.run(() => this.#noteFull(this.#cold.run(name, input, by))),
      this.#msMax,
    )
  }

  async #noteFull<T>(result: Promise<T>): Promise<T> {
    try {
      const value = await result
      this.#isColdFull = false
      return value
    } catch (fault) {
      this.#isColdFull = isDiskFull(fault)
      throw fault
    }
  }

  /** Waits for all operations, but not longer than the settle timeout. The pools stay open. */
  async close(): Promise<void> {
    const closed = storageAway('closed')
    const closings = [this.#ledger.close(), this.#alone.close(closed), this.#ofAccounts.close(closed)]
    await inTime(Promise.all(closings), bounds.settleMsMax).catch(() => {})
  }
}

/** Rejects after this time. What was begun may still be carried out. */
function inTime<T>(result: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(tooLate()), ms)
    result.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
