// What the audit log records of one operation.

import type { Input, OperationName, Result } from '../engine/operations.ts'

export interface AuditPlan<Name extends OperationName> {
  /** The results that have changed something. */
  readonly done: readonly Result<Name>['done'][]
  /** Gives one row, with `version` where it has one, and `account_id` where it is an account's. */
  readonly row?: string
  /** What the row is found by. */
  key?(input: Input<Name>, result?: Result<Name>): Key | readonly Key[]
  target(input: Input<Name>, result: Result<Name>): string
  account?(input: Input<Name>): number | undefined
  /** What cannot be seen in the row. Never anything secret. */
  tells?(input: Input<Name>, result: Result<Name>): Readonly<Record<string, unknown>>
}

export type Key = string | number
