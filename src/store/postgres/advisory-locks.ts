// The numbers of all advisory locks of Weir. Transactions that take the same number wait for each other, so each purpose has a
// number of its own. They are large, because other programs may use small numbers in the same database.

/** Operations that check first and write then. */
export const OPERATIONS_LOCK = '7311580423'
/** Processes that register. 0003-processes.sql has the same number. */
export const REGISTER_LOCK = '7311580424'
/** Processes that create or migrate the tables. */
export const SCHEMA_LOCK = '7311580425'
/** Operations on rows that calls write: shared by those of one account, exclusive for those of many. */
export const KEPT_ROWS_LOCK = '7311580426'
/** Processes that add records to the statistics. */
export const STATISTICS_LOCK = '7311580427'
/** With the hash of an account as the second number: operations on rows that calls of the account write. */
export const ACCOUNT_LOCK = '731158'
