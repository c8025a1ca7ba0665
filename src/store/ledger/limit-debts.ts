// Saves how much of the day limits has been used, so that a restart does not grant it again. Each limit has a row with
// the time at which its use is paid off, and the time at which that was noted. A row whose time is past is deleted.
//
// A single process replaces its rows. Of several processes, each adds what it has used to the row of all: a row that one
// of them replaced would forget the others.

import { bounds } from '../../base/bounds.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'

export interface LimitDebt {
  readonly name: string
  readonly paidMs: number
  readonly notedMs: number
  /** Only `paidMs - notedMs` counts: it is added to what the row has left. Negative after refunds. */
  readonly isIncrease?: true
}

const ROWS_PER_SWEEP = 1_000
/** Rows are deleted this long after they are paid off, because the clock may be a little wrong for a while. */
const KEEP_PAID_MS = 3_600_000

const upsert = query(
  `INSERT INTO limit_debt (name, paid_ms, noted_ms) VALUES (?1, ?2, ?3)
   ON CONFLICT (name) DO UPDATE SET paid_ms = excluded.paid_ms, noted_ms = excluded.noted_ms`,
)
// What is left of a row is never more than when it was noted, whichever way a clock was set.
const increase = query(
  `INSERT INTO limit_debt (name, paid_ms, noted_ms)
   SELECT CAST(?1 AS TEXT), CAST(?2 AS BIGINT), CAST(?3 AS BIGINT)
   WHERE CAST(?4 AS BIGINT) = 1 OR EXISTS (SELECT 1 FROM limit_debt WHERE name = ?1)
   ON CONFLICT (name) DO UPDATE SET noted_ms = excluded.noted_ms, paid_ms = excluded.paid_ms + CASE
     WHEN limit_debt.paid_ms <= excluded.noted_ms OR limit_debt.paid_ms <= limit_debt.noted_ms THEN 0
     WHEN limit_debt.noted_ms > excluded.noted_ms THEN limit_debt.paid_ms - limit_debt.noted_ms
     ELSE limit_debt.paid_ms - excluded.noted_ms END`,
)
const update = query('UPDATE limit_debt SET paid_ms = ?2, noted_ms = ?3 WHERE name = ?1')
const count = query<{ n: bigint }>('SELECT count(*) AS n FROM limit_debt')
const deletePaid = query(
  'DELETE FROM limit_debt WHERE name IN (SELECT name FROM limit_debt WHERE paid_ms < ?1 LIMIT ?2)',
)

export class LimitDebts {
  /** An upper bound of the number of rows. The rows are counted only when this bound reaches the limit. */
  #countMax = Number.POSITIVE_INFINITY

  /** Deletes some of the rows that are paid off. Returns how many. */
  deletePaid(nowMs: number): Steps<number> {
    return deletePaid.run(nowMs - KEEP_PAID_MS, ROWS_PER_SWEEP)
  }

  /** Writes debts. While the table is full, rows that exist are updated and new names are not added. */
  *save(debts: readonly LimitDebt[], nowMs: number): Steps<void> {
    if (this.#countMax + debts.length > bounds.storedLimitUsesMax) this.#countMax = Number((yield* count.get())!.n)
    const hasRoom = this.#countMax + debts.length <= bounds.storedLimitUsesMax
    const write = hasRoom ? upsert : update
    for (const { name, paidMs, notedMs, isIncrease } of debts) {
      // The clocks of several processes differ a little. Only one clock counts for a row of all.
      if (isIncrease) yield* increase.run(name, nowMs + paidMs - notedMs, nowMs, hasRoom ? 1 : 0)
      else yield* write.run(name, paidMs, notedMs)
    }
    if (hasRoom) this.#countMax += debts.length
  }
}
