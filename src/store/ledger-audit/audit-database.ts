// What an audit needs of a database. The checks are the same for all databases; what differs is how to find the
// transfers that are new since the last pass, and how to see that transfers are missing.

import type { SqlText, SqlValue, Steps } from '../engine/steps.ts'
import type { AuditFinding } from './findings.ts'

export interface AuditDatabase {
  /** The most rows that one slice of a pass reads. */
  readonly sliceRows: number
  /** A backup of an older schema has no table of deleted records, and no deleted records. */
  readonly hasDeletedRecords: boolean
  /** A backup of an older schema has no daily hashes. */
  readonly hasDailyHashes: boolean
  /** Runs steps that all see the same state of the database. */
  read<T>(steps: Steps<T>): T | Promise<T>
  /** Two equal numbers mean that nothing was written between them. Undefined if the database cannot tell this. */
  dataVersion(): bigint | undefined
  /** What is wrong with the tables themselves. */
  structureFindings(): readonly AuditFinding[] | Promise<readonly AuditFinding[]>
  /** Starts with the first transfer. */
  buildCursor(): TransferCursor
}

/** The parameters of `inSlice`: the transfers after one place, up to another. */
export type TransferRange = readonly SqlValue[]

/** Reads all transfers in slices, each of them once. */
export interface TransferCursor {
  /** The next slice. `isLost`: transfers that were there have disappeared, so the cursor must not be used further. */
  next(): Steps<{ readonly range: TransferRange; readonly isLast: boolean } | 'isLost'>
  /**
   * After the last slice, in the same snapshot: the transfers that are visible, and that `next` will return in a later
   * pass, because older ones may still be committed.
   */
  unsettled?(): Steps<readonly TransferRange[]>
  /** How many transfers are missing in the last snapshot, when `count` were read in it and before. */
  missing(count: bigint): bigint
}

/**
 * SQL with a condition for the transfers `t` of a slice. On PostgreSQL, `seq` is not in the order of commits, and `xid` does
 * not tell transfers of this server from those of another one, from which they were restored.
 */
export const inSlice = (sqlWith: (condition: string) => string): SqlText => ({
  sqlite: sqlWith('t.seq > ?1 AND t.seq <= ?2'),
  postgres: sqlWith('(t.xid, t.seq) > (?1, ?2) AND (t.xid, t.seq) <= (?3, ?4) AND t.seq > ?5 AND t.seq <= ?6'),
})
