// Reads accounts, keys, budgets, transfers and prices for an operator. It has its own connection, which is opened at
// the first use. Every query uses an index, and lists have a limit.

import type { Database } from 'bun:sqlite'
import { openReader } from '../engine/database.ts'
import { accountColumns, budgetColumns, keyColumns } from '../tables/accounts.ts'
import type { RowOf, SqlRow, StoredRow } from '../tables/columns.ts'
import { rowReader, selectList, sqlList } from '../tables/columns.ts'
import { transferColumns } from '../tables/records.ts'
import { OPERATOR_ID_MAX, SHORTFALL } from './operator-accounts.ts'
import type { TransferLine } from './statement.ts'
import { readTransferLine } from './statement.ts'

export type AccountView = StoredRow<typeof accountColumns>
export type KeyView = RowOf<typeof keyColumns>
export type BudgetView = StoredRow<typeof budgetColumns>

export interface PriceView {
  readonly version: bigint
  readonly model: string
  readonly origin: string
  readonly price: string
  readonly author: string
  readonly made_ms: bigint
}

export interface LedgerTotals {
  readonly openHolds: number
  readonly held: bigint
  /** The sum of all customer balances, computed as the negative sum of the operator accounts. */
  readonly balance: bigint
  readonly shortfall: bigint
  /** Tasks that are not finished at their upstream. */
  readonly tasks: number
}

const KEYS_SHOWN_MAX = 100
const PRICES_SHOWN_MAX = 1_000

const readKey = rowReader(keyColumns)

type RawRow = Record<string, bigint | string | null>

export class BooksReader {
  readonly #path: string
  #connection: Database | undefined

  constructor(path: string) {
    this.#path = path
  }

  get #db(): Database {
    this.#connection ??= openReader(this.#path)
    return this.#connection
  }

  account(id: number): AccountView | undefined {
    return this.#one<AccountView>(`SELECT ${sqlList(accountColumns)} FROM account WHERE id = ?1`, [id])
  }

  key(id: number): KeyView | undefined {
    const row = this.#one<SqlRow>(`SELECT ${selectList(keyColumns)} FROM api_key WHERE id = ?1`, [id])
    return row && readKey(row)
  }

  keysOf(accountId: number): readonly KeyView[] {
    const sql = `SELECT ${selectList(keyColumns)} FROM api_key WHERE account_id = ?1 ORDER BY id LIMIT ?2`
    return this.#all<SqlRow>(sql, [accountId, KEYS_SHOWN_MAX]).map(readKey)
  }

  /** The budgets of an account and of its keys, or of one key. */
  budgets(scopeId: number): readonly BudgetView[] {
    return this.#all<BudgetView>(
      `SELECT ${sqlList(budgetColumns)} FROM budget
       WHERE scope_id = ?1 OR scope_id IN (SELECT id FROM api_key WHERE account_id = ?1) ORDER BY scope_id, span`,
      [scopeId],
    )
  }

  transfersOf(ref: number): readonly TransferLine[] {
    const rows = this.#all<RawRow>(`SELECT ${sqlList(transferColumns)} FROM transfer WHERE ref = ?1 ORDER BY seq`, [
      ref,
    ])
    return rows.map(readTransferLine)
  }

  /** All versions of the price of one model, or the last version of each model. */
  prices(model: string | undefined): readonly PriceView[] {
    if (model === undefined) {
      return this.#all<PriceView>(
        `SELECT version, model, origin, price, author, made_ms FROM price
         WHERE version IN (SELECT max(version) FROM price GROUP BY model) ORDER BY model LIMIT ?1`,
        [PRICES_SHOWN_MAX],
      )
    }
    return this.#all<PriceView>(
      `SELECT version, model, origin, price, author, made_ms FROM price WHERE model = ?1
       ORDER BY version DESC LIMIT ?2`,
      [model, PRICES_SHOWN_MAX],
    )
  }

  totals(): LedgerTotals {
    const row = this.#one<RawRow>(
      `SELECT (SELECT count(*) FROM hold) AS holds, (SELECT coalesce(sum(amount), 0) FROM hold) AS held,
         (SELECT -balance FROM account WHERE id = ?1) AS shortfall,
         (SELECT -sum(balance) FROM account WHERE id <= ?2) AS balance,
         (SELECT count(*) FROM task WHERE due_ms IS NOT NULL) AS tasks`,
      [SHORTFALL, OPERATOR_ID_MAX],
    )!
    return {
      openHolds: Number(row.holds),
      tasks: Number(row.tasks),
      held: row.held as bigint,
      shortfall: row.shortfall as bigint,
      balance: row.balance as bigint,
    }
  }

  close(): void {
    this.#connection?.close()
  }

  #one<Row>(sql: string, values: (string | number | null)[]): Row | undefined {
    return this.#db.query<Row, (string | number | null)[]>(sql).get(...values) ?? undefined
  }

  #all<Row>(sql: string, values: (string | number | null)[]): readonly Row[] {
    return this.#db.query<Row, (string | number | null)[]>(sql).all(...values)
  }
}
