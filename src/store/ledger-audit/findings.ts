// The types of the results of a ledger audit: which check failed, for which account, and a sentence about it.

import type { Hint, HintData } from '../../base/hints.ts'

export type AuditCheck =
  | 'balance' // a balance is not the sum of its transfers
  | 'sum' // the sum of all balances is not zero
  | 'held' // the held amount is not the sum of the open holds
  | 'budget'
  | 'call' // charge, shortfall, refund, record and hold of one call do not agree
  | 'code'
  | 'parties' // a transfer is between accounts that its kind does not allow
  | 'day' // the transfers of a closed day are not those that were hashed at its end
  | 'transfers' // transfers are missing
  | 'schema' // a trigger, index or check that protects the ledger is missing
  | 'file'

export interface AuditFinding {
  readonly check: AuditCheck
  /** Null where the finding is not about one account. */
  readonly accountId: number | null
  /** The same finding always has the same key, so that it is acted upon only once. */
  readonly key: string
  readonly text: string
  /** The sentence as data. */
  readonly hint: HintData
}

export interface AuditReport {
  readonly findings: readonly AuditFinding[]
  /** The numbers of rows that have been read so far. */
  readonly transfers: number
  /** Undefined if they were not read, because the database itself is damaged. */
  readonly records: number | undefined
  readonly accounts: number
  readonly holds: number
  /** When the last pass ended, and how long it took. */
  readonly atMs: number
  readonly tookMs: number
}

export interface AuditFindingInput extends Pick<AuditFinding, 'check' | 'key'> {
  readonly hint: Hint
  /** The account, as a column of a row. */
  readonly owner?: bigint | undefined
}

export function createFinding({ check, key, hint, owner }: AuditFindingInput): AuditFinding {
  return {
    check,
    accountId: owner === undefined ? null : Number(owner),
    key: `${check}:${owner ?? ''}:${key}`,
    text: hint.text,
    hint: hint.data,
  }
}
