// Runs the operations that are steps on PostgreSQL, each in its own transaction.
//
// Operations check first and write then, and were written for a single writer. With several processes a lock keeps it so:
// every operation takes the same one first. Operations of calls do not take it.

import type { AuditJob, StaleVersion } from '../audit-log/audited-operations.ts'
import { isAudited, runAudited } from '../audit-log/audited-operations.ts'
import { statelessOperations } from '../engine/cold-operations.ts'
import type { OperationContext } from '../engine/operation.ts'
import type { OperationInput, OperationName, OperationResult } from '../engine/operations.ts'
import type { Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import type { PostgresPool } from './pools.ts'

export type StatelessName = keyof typeof statelessOperations

/** Beside the input: who asks, for audited operations. */
export type AuditedBy = NonNullable<AuditJob['by']>

export interface ColdOptions {
  /** The number of this process. Its part of the operator's balances has this number. */
  readonly slot: number
  /** Only for tests. Without it, the clock of the database counts. */
  readonly nowMs?: () => number
}

// Any number that no other program on the same database uses.
const beginAlone = postgresQuery<{ now_ms: bigint }>(
  `SELECT pg_advisory_xact_lock(7311580423), CAST(extract(epoch FROM now()) * 1000 AS BIGINT) AS now_ms`,
)
const awaitBatches = { text: { sqlite: '', postgres: 'CALL await_batches()' }, values: [], want: 'changes' } as const
const readParts = postgresQuery<{ balance: bigint }>(
  'SELECT CAST(coalesce(sum(balance), 0) AS BIGINT) AS balance FROM operator_part WHERE account_id = $1',
)
const addToPart = postgresQuery(
  `INSERT INTO operator_part (account_id, slot, balance) VALUES ($1, $2, $3)
   ON CONFLICT (account_id, slot) DO UPDATE SET balance = operator_part.balance + excluded.balance`,
)

type AnySteps = (input: unknown, context: OperationContext) => Steps<OperationResult<OperationName>>

export class PostgresOperations {
  readonly #pool: PostgresPool
  readonly #options: ColdOptions

  constructor(pool: PostgresPool, options: ColdOptions) {
    this.#pool = pool
    this.#options = options
  }

  /**
   * Resolves when the operation is durable, and, if people have asked for it, when no process accepts a call any more
   * that was admitted before it.
   */
  async run<Name extends StatelessName>(
    name: Name,
    input: OperationInput<Name>,
    by?: AuditedBy,
  ): Promise<OperationResult<Name> | StaleVersion> {
    const result = await this.#pool.transact(this.#steps(name, input, by))
    if (isAudited(name)) await this.#pool.runAlone(awaitBatches)
    return result as OperationResult<Name> | StaleVersion
  }

  *#steps(
    name: StatelessName,
    input: OperationInput<StatelessName>,
    by: AuditedBy | undefined,
  ): Steps<OperationResult<OperationName> | StaleVersion> {
    const { now_ms: databaseMs } = (yield* beginAlone.get())!
    const { slot, nowMs = () => Number(databaseMs) } = this.#options
    const context = contextOf(slot, nowMs)
    const job = { name, input, ...(by !== undefined && { by }) }
    if (isAudited(name)) return yield* runAudited(job, statelessOperations, context)
    return yield* (statelessOperations[name] as AnySteps)(input, context)
  }
}

const contextOf = (slot: number, nowMs: () => number): OperationContext => ({
  nowMs,
  // Nothing is kept in memory: holds look for budgets in their own transaction.
  budgets: { add() {}, reload() {} },
  operators: {
    *read(id) {
      return (yield* readParts.get(id))!.balance
    },
    *move(id, amount) {
      yield* addToPart.run(id, slot, amount)
    },
  },
})
