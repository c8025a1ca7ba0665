// The type of an audit plan: what the audit log records about one operation.

import type { OperationInput, OperationName, OperationResult } from '../engine/operations.ts'
import type { Query } from '../engine/steps.ts'
import type { SqlRow } from '../tables/columns.ts'

/** A value as JSON writes it. Absent values are left out. */
type AuditScalar = string | number | boolean | null | undefined

/** What can be in the log: one value, or a list. The management interface describes its answers by this. */
export type AuditDetail = AuditScalar | readonly AuditScalar[]

export interface AuditPlan<Name extends OperationName> {
  /** The results for which an audit row is written, because they have changed something. */
  readonly done: readonly OperationResult<Name>['done'][]
  /** Selects the changed row, with `version` where it has one, and `account_id` where it has an account. */
  readonly row?: Query<SqlRow>
  /** The parameters of `row`. */
  key?(input: OperationInput<Name>, result?: OperationResult<Name>): AuditKey | readonly AuditKey[]
  target(input: OperationInput<Name>, result: OperationResult<Name>): string
  account?(input: OperationInput<Name>): number | undefined
  /** Further details that the row does not have. They must never be secret. `after`: the row after the operation. */
  details?(
    input: OperationInput<Name>,
    result: OperationResult<Name>,
    after: SqlRow | undefined,
  ): Readonly<Record<string, AuditDetail>>
}

export type AuditKey = string | number | Uint8Array

/** Which fields an operation has changed, where their values must not be in the log. */
export function changedFields(input: object, names: readonly string[]): { readonly changed?: readonly string[] } {
  const changed = names.filter(name => (input as Record<string, unknown>)[name] !== undefined)
  return changed.length === 0 ? {} : { changed }
}
