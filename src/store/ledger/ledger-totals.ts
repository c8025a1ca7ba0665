// Reads the sums of the ledger for the metrics. It has its own connection, which is opened at the first use.

import type { Database } from 'bun:sqlite'
import { openReader } from '../engine/database.ts'
import { OPERATOR_ID_MAX, SHORTFALL } from './operator-accounts.ts'

export interface LedgerTotals {
  readonly openHolds: number
  readonly held: bigint
  /** The sum of all customer balances, computed as the negative sum of the operator accounts. */
  readonly balance: bigint
  readonly shortfall: bigint
  /** Tasks that are not finished at their upstream. */
  readonly tasks: number
}

export class LedgerTotalsReader {
  readonly #path: string
  #connection: Database | undefined

  constructor(path: string) {
    this.#path = path
  }

  totals(): LedgerTotals {
    this.#connection ??= openReader(this.#path)
    const row = this.#connection
      .query<Record<string, bigint>, [number, number]>(
        `SELECT (SELECT count(*) FROM hold) AS holds, (SELECT coalesce(sum(amount), 0) FROM hold) AS held,
           (SELECT -balance FROM account WHERE id = ?1) AS shortfall,
           (SELECT -sum(balance) FROM account WHERE id <= ?2) AS balance,
           (SELECT count(*) FROM task WHERE due_ms IS NOT NULL) AS tasks`,
      )
      .get(SHORTFALL, OPERATOR_ID_MAX)!
    return {
      openHolds: Number(row.holds),
      tasks: Number(row.tasks),
      held: row.held!,
      shortfall: row.shortfall!,
      balance: row.balance!,
    }
  }

  close(): void {
    this.#connection?.close()
  }
}
