// The sums of the ledger for the metrics, read every few seconds.

import { postgresQuery } from '../engine/steps.ts'
import type { LedgerTotalsSource } from '../engine/store-engine.ts'
import type { LedgerTotals } from '../ledger/ledger-totals.ts'
import { SHORTFALL } from '../ledger/operator-accounts.ts'
import type { PostgresPool } from './pools.ts'

const REFRESH_MS = 5_000

const sumUp = postgresQuery<Record<string, bigint>>(
  `SELECT (SELECT count(*) FROM hold) AS holds,
     (SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM hold) AS held,
     (SELECT CAST(coalesce(-sum(balance), 0) AS BIGINT) FROM operator_part WHERE account_id = $1) AS shortfall,
     (SELECT CAST(coalesce(-sum(balance), 0) AS BIGINT) FROM operator_part) AS balance,
     (SELECT count(*) FROM task WHERE due_ms IS NOT NULL) AS tasks`,
)

export class PostgresTotals implements LedgerTotalsSource {
  readonly #pool: Pick<PostgresPool, 'read'>
  #totals: LedgerTotals = { openHolds: 0, held: 0n, balance: 0n, shortfall: 0n, tasks: 0 }
  #timer: ReturnType<typeof setInterval> | undefined

  private constructor(pool: Pick<PostgresPool, 'read'>) {
    this.#pool = pool
  }

  static async open(pool: Pick<PostgresPool, 'read'>): Promise<PostgresTotals> {
    const totals = new PostgresTotals(pool)
    await totals.refresh()
    // The last totals stay while the database is away.
    totals.#timer = setInterval(() => totals.refresh().catch(() => {}), REFRESH_MS)
    return totals
  }

  totals(): LedgerTotals {
    return this.#totals
  }

  async refresh(): Promise<void> {
    const row = (await this.#pool.read(sumUp.get(SHORTFALL)))!
    this.#totals = {
      openHolds: Number(row.holds),
      tasks: Number(row.tasks),
      held: row.held!,
      shortfall: row.shortfall!,
      balance: row.balance!,
    }
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
