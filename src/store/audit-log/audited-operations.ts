// Runs audited operations: writes a row of the audit log in the same transaction, chained to the row before it, and
// refuses a change to a row whose version is not the expected one.
//
// The logged columns are an allow-list: a digest, a password, encrypted content or the name of a person is never one of
// them.

import { createHash } from 'node:crypto'
import { assert } from '../../base/assert.ts'
import type { OperationContext } from '../engine/operation.ts'
import type { OperationInput, OperationName, OperationResult, OperationSteps } from '../engine/operations.ts'
import type { SqlValue, Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { SqlRow } from '../tables/columns.ts'
import type { AuditPlan } from './audit-plan.ts'
import type { AuditedName, AuditPlans } from './plans.ts'
import { auditPlans } from './plans.ts'

/** The actor of a write, and where the request came from. */
export interface AuditActor {
  /** `usr_…`, or `tok_…` for a service token, or `cli`, or `file` for the configuration file, or Weir itself. */
  readonly actor: string
  readonly address?: string
  /** `req_…` */
  readonly request?: string
}

/** The version of the row that the actor expects. */
export interface ExpectedVersion {
  readonly expectedVersion: number
}

/** The row has another version than expected; nothing was changed. */
export interface StaleVersion {
  readonly done: 'stale'
}

type Outcome = OperationResult<OperationName>

export interface AuditRow {
  readonly seq: number
  readonly madeMs: number
  readonly actor: string
  readonly address: string | null
  readonly request: string | null
  readonly action: string
  readonly target: string
  readonly accountId: number | null
  /** JSON: the old and new values of the changed columns. */
  readonly changes: string
}

const NO_HASH = Buffer.alloc(32)

/** The text of an audit row that is hashed. The order of the fields is part of it. */
export function auditText(row: AuditRow): string {
  const { seq, madeMs, actor, address, request, action, target, accountId, changes } = row
  return JSON.stringify([seq, madeMs, actor, address, request, action, target, accountId, changes])
}

/** The hash of an audit row, with the hash of the row before it. */
export const auditHash = (before: Uint8Array, row: AuditRow): Buffer =>
  createHash('sha256').update(before).update(auditText(row)).digest()

export interface AuditJob {
  readonly name: OperationName
  readonly input: OperationInput<OperationName>
  readonly by?: AuditActor & Partial<ExpectedVersion>
}

export const isAudited = (name: OperationName): name is AuditedName => Object.hasOwn(auditPlans, name)

const findLast = query<{ seq: bigint; hash: Uint8Array }>('SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1')
const insert = query(
  `INSERT INTO audit (seq, made_ms, actor, address, request, action, target, account_id, changes, hash)
   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`,
)

function* append(row: Omit<AuditRow, 'seq'>): Steps<void> {
  const last = yield* findLast.get()
  // The hash must be that of the stored text, and half of a surrogate pair cannot be stored.
  const whole: AuditRow = { seq: Number(last?.seq ?? 0n) + 1, ...row, target: row.target.toWellFormed() }
  const { seq, madeMs, actor, address, request, action, target, accountId, changes } = whole
  const hash = auditHash(last?.hash ?? NO_HASH, whole)
  yield* insert.run(seq, madeMs, actor, address, request, action, target, accountId, changes, hash)
}

type AnySteps = (input: AuditJob['input'], context: OperationContext) => Steps<Outcome>

/** Runs an audited operation. If it changed something, it also writes an audit row. */
export function* runAudited(
  { name, input, by }: AuditJob,
  operations: Pick<OperationSteps, AuditedName>,
  context: OperationContext,
): Steps<Outcome | StaleVersion> {
  assert(by !== undefined && isAudited(name), 'an audited operation must name its actor')
  const plan: AuditPlan<OperationName> = auditPlans[name]
  // The caller has checked that the input fits the name.
  const operation = operations[name] as AnySteps
  const before = yield* readRow(plan, input)
  // What has no row has the version 0. So a change of a row that was removed meanwhile does not create it again.
  const version = before === undefined ? 0 : Number(before.version)
  const isStale = by.expectedVersion !== undefined && plan.row !== undefined && version !== by.expectedVersion
  if (isStale) {
    // The version matters only where the operation would otherwise succeed. An actor who may not see or change the
    // row gets the same result with every version, and the same as for a row that does not exist.
    const result = yield* dryRun(dryContext => operation(input, dryContext), context)
    return plan.done.includes(result.done) ? { done: 'stale' } : result
  }
  const result = yield* operation(input, context)
  if (!plan.done.includes(result.done)) return result
  const after = yield* readRow(plan, input, result)
  const details = plan.details?.(input, result, after) ?? {}
  yield* append({
    madeMs: context.nowMs(),
    actor: by.actor,
    address: by.address ?? null,
    request: by.request ?? null,
    action: name,
    target: plan.target(input, result),
    accountId: plan.account?.(input) ?? accountOf(after ?? before),
    changes: JSON.stringify({ ...details, ...changesOf(before, after) }, bigintToText),
  })
  return result
}

const begin = query('SAVEPOINT dry_run')
const rollBack = query('ROLLBACK TO SAVEPOINT dry_run')
const release = query('RELEASE SAVEPOINT dry_run')

/** Runs an operation only for its result: its writes are rolled back, and what the engine has in memory stays as it is. */
function* dryRun(run: (context: OperationContext) => Steps<Outcome>, context: OperationContext): Steps<Outcome> {
  yield* begin.run()
  const result = yield* run({ ...context, operators: { ...context.operators, *move() {} } })
  yield* rollBack.run()
  yield* release.run()
  context.budgets.reload()
  return result
}

/** Reads the row of the operation, before and after it. */
function* readRow(
  { row, key }: AuditPlan<OperationName>,
  input: AuditJob['input'],
  result?: Outcome,
): Steps<SqlRow | undefined> {
  return row === undefined || key === undefined ? undefined : yield* row.get(...[key(input, result)].flat())
}

const accountOf = (row: SqlRow | undefined): number | null =>
  row?.account_id === undefined || row.account_id === null ? null : Number(row.account_id)

/** The old and the new value of each changed column. */
function changesOf(
  before: SqlRow | undefined,
  after: SqlRow | undefined,
): Record<string, readonly [SqlValue, SqlValue]> {
  const columns = Object.keys(after ?? before ?? {}).filter(name => name !== 'version')
  const pairs = columns.map(name => [name, [before?.[name] ?? null, after?.[name] ?? null]] as const)
  return Object.fromEntries(pairs.filter(([, [oldValue, newValue]]) => oldValue !== newValue))
}

const bigintToText = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)

export type { AuditPlans }
