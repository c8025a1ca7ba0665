// The version of a new row, where a row can be removed and created again under the same name or number.

/**
 * The next number of the audit log, as SQL. Each change of a row raises its version by one and adds a row to the audit log,
 * so this is higher than every version that an earlier row of the same name has had: an `If-Match` of that row is stale.
 */
export const FIRST_VERSION = '(SELECT coalesce(max(seq), 0) + 1 FROM audit)'
