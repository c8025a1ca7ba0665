// Runs audited operations: writes a row of the audit log in the same transaction, chained to the row before it, and
// refuses a change to a row whose version is not the expected one.
//
// The logged columns are an allow-list: a digest, a password or encrypted content is never one of them.

import type { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import { assert } from '../../base/assert.ts'
import type { OperationInput, OperationName, OperationResult } from '../engine/operations.ts'
import type { AuditPlan } from './audit-plan.ts'
import type { AuditedName, AuditPlans } from './plans.ts'
import { auditPlans } from './plans.ts'

/** The actor of a write, and where the request came from. */
export interface AuditActor {
  /** `usr_…`, or `tok_…` for a service token, or `cli`, or Weir itself. */
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

type Value = bigint | string | number | null | Uint8Array
type Row = Readonly<Record<string, Value>>
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

/** The hash of an audit row. The order of the fields is part of the hash. */
export function auditHash(before: Uint8Array, row: AuditRow): Buffer {
  const { seq, madeMs, actor, address, request, action, target, accountId, changes } = row
  const text = JSON.stringify([seq, madeMs, actor, address, request, action, target, accountId, changes])
  return createHash('sha256').update(before).update(text).digest()
}

export interface AuditJob {
  readonly name: OperationName
  readonly input: OperationInput<OperationName>
  readonly by?: AuditActor & Partial<ExpectedVersion>
}

export const isAudited = (name: OperationName): name is AuditedName => Object.hasOwn(auditPlans, name)

/** Runs an audited operation. If it changed something, it also writes an audit row. */
export type RunAudited = (job: AuditJob, run: () => Outcome) => Outcome | StaleVersion

export interface AuditParts {
  nowMs(): number
  /** Called after an operation was rolled back, to read again what it had changed in memory. */
  onRolledBack(): void
}

export function openAuditLog(db: Database, { nowMs, onRolledBack }: AuditParts): RunAudited {
  const findLast = db.query('SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1')
  const insert = db.query(
    `INSERT INTO audit (seq, made_ms, actor, address, request, action, target, account_id, changes, hash)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`,
  )

  function append(row: Omit<AuditRow, 'seq' | 'madeMs'>): void {
    const last = findLast.get() as { seq: bigint; hash: Uint8Array } | null
    const whole: AuditRow = { seq: Number(last?.seq ?? 0n) + 1, madeMs: nowMs(), ...row }
    const { seq, madeMs, actor, address, request, action, target, accountId, changes } = whole
    const hash = auditHash(last?.hash ?? NO_HASH, whole)
    insert.run(seq, madeMs, actor, address, request, action, target, accountId, changes, hash)
  }

  const dryRun = buildDryRun(db, onRolledBack)

  return function runAudited({ name, input, by }, run) {
    assert(by !== undefined && isAudited(name), 'an audited operation must name its actor')
    const plan: AuditPlan<OperationName> = auditPlans[name]
    const readRow = rowReader(db, plan, input)
    const before = readRow()
    const isStale =
      by.expectedVersion !== undefined && before !== undefined && Number(before.version) !== by.expectedVersion
    if (isStale) {
      // The version matters only where the operation would otherwise succeed. An actor who may not see or change the
      // row gets the same result with every version, and the same as for a row that does not exist.
      const result = dryRun(run)
      return plan.done.includes(result.done) ? { done: 'stale' } : result
    }
    const result = run()
    if (!plan.done.includes(result.done)) return result
    const after = readRow(result)
    const details = plan.details?.(input, result) ?? {}
    append({
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
}

/** Runs an operation only for its result: its writes are rolled back. */
function buildDryRun(db: Database, onRolledBack: () => void): (run: () => Outcome) => Outcome {
  const rolledBack = new Error('rolled back')
  return function dryRun(run) {
    let result: Outcome | undefined
    try {
      db.transaction(() => {
        result = run()
        throw rolledBack
      })()
    } catch (fault) {
      if (fault !== rolledBack) throw fault
    }
    onRolledBack()
    return result!
  }
}

/** Returns a function that reads the row of the operation, to be called before and after it. */
function rowReader(
  db: Database,
  { row, key }: AuditPlan<OperationName>,
  input: AuditJob['input'],
): (result?: Outcome) => Row | undefined {
  if (row === undefined || key === undefined) return () => undefined
  const query = db.query<Row, (string | number)[]>(row)
  return result => query.get(...[key(input, result)].flat()) ?? undefined
}

const accountOf = (row: Row | undefined): number | null =>
  row?.account_id === undefined || row.account_id === null ? null : Number(row.account_id)

/** The old and the new value of each changed column. */
function changesOf(before: Row | undefined, after: Row | undefined): Record<string, readonly [Value, Value]> {
  const columns = Object.keys(after ?? before ?? {}).filter(name => name !== 'version')
  const pairs = columns.map(name => [name, [before?.[name] ?? null, after?.[name] ?? null]] as const)
  return Object.fromEntries(pairs.filter(([, [oldValue, newValue]]) => oldValue !== newValue))
}

const bigintToText = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)

export type { AuditPlans }
