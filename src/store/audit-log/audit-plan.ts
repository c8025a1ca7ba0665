// The type of an audit plan: what the audit log records about one operation.

import type { Input, OperationName, Result } from '../engine/operations.ts'

export interface AuditPlan<Name extends OperationName> {
  /** The results for which an audit row is written, because they have changed something. */
  readonly done: readonly Result<Name>['done'][]
  /** SQL that selects the changed row, with `version` where it has one, and `account_id` where it has an account. */
  readonly row?: string
  /** The parameters of `row`. */
  key?(input: Input<Name>, result?: Result<Name>): Key | readonly Key[]
  target(input: Input<Name>, result: Result<Name>): string
  account?(input: Input<Name>): number | undefined
  /** Further details that the row does not have. They must never be secret. */
  tells?(input: Input<Name>, result: Result<Name>): Readonly<Record<string, unknown>>
}

export type Key = string | number
