// What day limits have given, so that a start does not give it again: for each name the date at which it is paid, and
// the date at which that was said. A name whose date is past says nothing, and goes.

import type { Database } from 'bun:sqlite'
import { bounds } from '../../base/bounds.ts'

export interface LimitDebt {
  readonly name: string
  readonly paidMs: number
  readonly notedMs: number
}

const SOME = 1_000
/** A clock that is a little wrong for a while must not make it forget. */
const KEPT_MS = 3_600_000

export class LimitDebts {
  readonly #write
  readonly #change
  readonly #count
  readonly #forget
  /** No more rows than that are there: counted only when it matters. */
  #atMost = Number.POSITIVE_INFINITY

  constructor(db: Database) {
    this.#write = db.query(
      `INSERT INTO limit_debt (name, paid_ms, noted_ms) VALUES (?1, ?2, ?3)
       ON CONFLICT (name) DO UPDATE SET paid_ms = excluded.paid_ms, noted_ms = excluded.noted_ms`,
    )
    this.#change = db.query('UPDATE limit_debt SET paid_ms = ?2, noted_ms = ?3 WHERE name = ?1')
    this.#count = db.query<{ count: bigint }, []>('SELECT count(*) AS count FROM limit_debt')
    this.#forget = db.query(
      'DELETE FROM limit_debt WHERE name IN (SELECT name FROM limit_debt WHERE paid_ms < ?1 LIMIT ?2)',
    )
  }

  /** A new name has a place only while there is one. */
  note(debts: readonly LimitDebt[]): void {
    if (this.#atMost + debts.length > bounds.limitDebtsMax) this.#atMost = Number(this.#count.get()!.count)
    const hasRoom = this.#atMost + debts.length <= bounds.limitDebtsMax
    const write = hasRoom ? this.#write : this.#change
    for (const { name, paidMs, notedMs } of debts) write.run(name, paidMs, notedMs)
    if (hasRoom) this.#atMost += debts.length
  }

  /** Some of them; gives how many. */
  forget(nowMs: number): number {
    return this.#forget.run(nowMs - KEPT_MS, SOME).changes
  }
}
