// Runs the operations that are steps on PostgreSQL, each in its own transaction.
//
// Operations check first and write then, and were written for a single writer. With several processes locks keep it so:
// - Most operations take the same lock first, so that they run one after another in all processes.
// - What calls write of one account (its stored responses, files, tasks …) must not wait for that lock. Such an operation
//   takes a lock of its account. Operations on such rows of many accounts exclude all of these for a moment.
// - A move of the data to SQLite excludes all of them for a moment, and those that come later are refused. A process that was
//   stopped or cut off for longer than its lease may come back after a move.
// - Operations that read or change money lock the row of the account as well, as the batches of calls do: what they have
//   read stays true until they have written. Each locks one account, so that they and batches, which lock accounts in the
//   order of their ids, never wait for each other in a circle.

import { refusal } from '../../base/errors.ts'
import { forOperator } from '../../base/hints.ts'
import type { AuditJob, StaleVersion } from '../audit-log/audited-operations.ts'
import { isAudited, runAudited } from '../audit-log/audited-operations.ts'
import { statelessOperations } from '../engine/cold-operations.ts'
import type { OperationContext } from '../engine/operation.ts'
import type { ColdName, OperationInput, OperationName, OperationResult } from '../engine/operations.ts'
import type { Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import type { VaultOptions } from '../vault/vault-operations.ts'
import { vaultOperations } from '../vault/vault-operations.ts'
import { ACCOUNT_LOCK, KEPT_ROWS_LOCK, OPERATIONS_LOCK } from './advisory-locks.ts'
import { repeatConflicts } from './faults.ts'
import type { PostgresPool } from './pools.ts'

/** Beside the input: who asks, for audited operations. */
export type AuditedBy = NonNullable<AuditJob['by']>

export interface ColdOptions extends Pick<VaultOptions, 'responsesBytesMax'> {
  /** The part of the operator's balances that is changed. Zero is nobody's, and these operations run one by one. */
  readonly slot: number
  /** Only for tests. Without it, the clock of the database counts. */
  readonly nowMs?: () => number
}

/** The account of each operation on rows that calls write. Null: it changes one row, by one statement. */
const vaultAccounts: { readonly [Name in ColdName]?: (input: OperationInput<Name>) => number | null } = {
  keepResponse: ({ accountId }) => accountId,
  changeResponse: ({ accountId }) => accountId,
  dropResponse: ({ accountId }) => accountId,
  keepReasoning: ({ accountId }) => accountId,
  keepFile: ({ accountId }) => accountId,
  dropFile: ({ accountId }) => accountId,
  keepReferences: ({ accountId }) => accountId,
  createTask: ({ accountId }) => accountId,
  changeTask: () => null,
  dropTask: () => null,
}

/** Operations on such rows of many accounts. */
const sweeps: ReadonlySet<ColdName> = new Set(['forgetKept', 'reseal'])

/** The account, or the key of the account, whose money an operation reads or changes. */
const moneyScopes: { readonly [Name in ColdName]?: (input: OperationInput<Name>) => number } = {
  post: ({ accountId }) => accountId,
  redeemCode: ({ accountId }) => accountId,
  createKey: ({ accountId }) => accountId,
  setPlaygroundKey: ({ accountId }) => accountId,
  setAccount: ({ id }) => id,
  setBudget: ({ scopeId }) => scopeId,
  setAlert: ({ accountId }) => accountId,
}

const DATA_MOVED = forOperator(
  'The data of this database was moved to SQLite, or is being moved. Stop this gateway: it does not use the data any more.',
)

type ScopeOf = ((input: unknown) => number | null) | undefined

/** Whether an operation waits for no others but those on what calls have written of the same account. */
export const isOfAccount = (name: ColdName): boolean => vaultAccounts[name] !== undefined

const lockOperations = postgresQuery(`SELECT pg_advisory_xact_lock(${OPERATIONS_LOCK})`)
const lockAllOperations = postgresQuery(
  `SELECT pg_advisory_xact_lock(${OPERATIONS_LOCK}), pg_advisory_xact_lock(${KEPT_ROWS_LOCK})`,
)
const awaitBatches = { text: { sqlite: '', postgres: 'CALL await_batches()' }, values: [], want: 'changes' } as const
// Two accounts may have the same hash. Then they wait for each other without need.
const lockOfAccount = postgresQuery(
  `SELECT pg_advisory_xact_lock_shared(${KEPT_ROWS_LOCK}), pg_advisory_xact_lock(${ACCOUNT_LOCK}, hashint8($1))`,
)
const lockKeptRows = postgresQuery(`SELECT pg_advisory_xact_lock_shared(${KEPT_ROWS_LOCK})`)
// After the lock: operations that have waited must not write earlier times than those before them, and must see that the
// data has been moved meanwhile.
const readBegun = postgresQuery<{ readonly now_ms: bigint; readonly moved: string | null }>(
  "SELECT database_ms() AS now_ms, (SELECT state FROM move_state WHERE state <> 'ready') AS moved",
)
// The lock of batches. FOR UPDATE would also stop those who only refer to the account.
const lockAccount = postgresQuery(
  'SELECT 1 FROM account WHERE id = coalesce((SELECT account_id FROM api_key WHERE id = $1), $1) FOR NO KEY UPDATE',
)

const readParts = postgresQuery<{ balance: bigint }>(
  'SELECT CAST(coalesce(sum(balance), 0) AS BIGINT) AS balance FROM operator_part WHERE account_id = $1',
)
const addToPart = postgresQuery(
  `INSERT INTO operator_part (account_id, slot, balance) VALUES ($1, $2, $3)
   ON CONFLICT (account_id, slot) DO UPDATE SET balance = operator_part.balance + excluded.balance`,
)

type AnySteps = (input: unknown, context: OperationContext) => Steps<OperationResult<OperationName>>

export class PostgresOperations {
  readonly #pool: Pick<PostgresPool, 'transact' | 'runAlone'>
  readonly #options: ColdOptions

  constructor(pool: Pick<PostgresPool, 'transact' | 'runAlone'>, options: ColdOptions) {
    this.#pool = pool
    this.#options = options
  }

  /**
   * Resolves when the operation is durable, and, if people have asked for it, when no process accepts a call any more
   * that was admitted before it.
   */
  async run<Name extends ColdName>(
    name: Name,
    input: OperationInput<Name>,
    by?: AuditedBy,
  ): Promise<OperationResult<Name> | StaleVersion> {
    const result = await this.#transact(() => this.#steps(name, input, by))
    if (isAudited(name)) await this.#pool.runAlone(awaitBatches)
    return result as OperationResult<Name> | StaleVersion
  }

  #transact<T>(build: () => Steps<T>): Promise<T> {
    return repeatConflicts(() => this.#pool.transact(build()))
  }

  *#steps(
    name: ColdName,
    input: OperationInput<ColdName>,
    by: AuditedBy | undefined,
  ): Steps<OperationResult<OperationName> | StaleVersion> {
    const databaseMs = yield* begin(name, input)
    const { slot, responsesBytesMax, nowMs = () => databaseMs } = this.#options
    const context = contextOf(slot, nowMs)
    const job = { name, input, ...(by !== undefined && { by }) }
    const operations = { ...statelessOperations, ...vaultOperations({ responsesBytesMax, isShared: true }).run }
    if (isAudited(name)) return yield* runAudited(job, operations, context)
    return yield* (operations[name] as AnySteps)(input, context)
  }
}

/** Takes the locks of an operation. Returns the time of the database. */
function* begin(name: ColdName, input: OperationInput<ColdName>): Steps<number> {
  yield* takeLock(name, input)
  const { now_ms: nowMs, moved } = (yield* readBegun.get())!
  if (moved !== null) throw refusal('state_unfit', DATA_MOVED)
  const moneyScope = moneyScopes[name] as ScopeOf
  if (moneyScope !== undefined) yield* lockAccount.get(moneyScope(input))
  return Number(nowMs)
}

function takeLock(name: ColdName, input: OperationInput<ColdName>): Steps<unknown> {
  const accountOf = vaultAccounts[name] as ScopeOf
  if (accountOf === undefined) return sweeps.has(name) ? excludeOperations() : lockOperations.get()
  const accountId = accountOf(input)
  return accountId === null ? lockKeptRows.get() : lockOfAccount.get(accountId)
}

/** Waits for the operations under way. Others wait until the end of this transaction. */
export const excludeOperations = (): Steps<unknown> => lockAllOperations.get()

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
