// What errors of PostgreSQL mean for whoever gets them.

import { Refusal } from '../../base/errors.ts'

/** The SQLSTATE of an error; undefined for errors of the driver, for example of a lost connection. */
export function sqlStateOf(fault: unknown): string | undefined {
  // The driver has it in `errno`.
  const state = String((fault as { errno?: unknown } | null)?.errno ?? '')
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(state) ? state : undefined
}

export const isDiskFull = (fault: unknown): boolean => sqlStateOf(fault) === '53100'

/** The server can only be read: it is a standby, for example, because another one has taken over. */
export const isReadOnly = (fault: unknown): boolean => sqlStateOf(fault) === '25006'

/** The server has closed the connection, or it broke, before the answer. */
export const isConnectionLost = (fault: unknown): boolean =>
  /^57P0[12]$/.test(sqlStateOf(fault) ?? '') ||
  (fault as { code?: unknown } | null)?.code === 'ERR_POSTGRES_CONNECTION_CLOSED'

/** The transaction was rolled back because of others that ran at the same time: it can be run again at once. */
function isConflict(fault: unknown): boolean {
  const state = sqlStateOf(fault)
  return state === '40P01' || state === '40001'
}

/** How often a transaction is run again that was rolled back because of others. */
const REPEATS_MAX = 10

/** Runs a transaction, and runs it again after a conflict with others. `transact` begins a new one each time. */
export async function repeatConflicts<T>(transact: () => Promise<T>): Promise<T> {
  for (let repeats = 0; ; repeats++) {
    try {
      return await transact()
    } catch (fault) {
      if (!isConflict(fault) || repeats === REPEATS_MAX) throw fault
    }
  }
}

export const storageAway = (detail: string): Refusal => new Refusal('storage_away', detail, { retryAfterMs: 1_000 })

/** The error that the rest of Weir gets. Details of the database are for the log only. */
export function refusalOf(fault: unknown): Refusal {
  if (fault instanceof Refusal) return fault
  const detail = fault instanceof Error ? fault.message : 'unknown error'
  return isDiskFull(fault) ? new Refusal('storage_full', detail, { retryAfterMs: 1_000 }) : storageAway(detail)
}
