// What an operator looks at: accounts, budgets, statements, prices. On a connection of its own, opened when
// it is first used; every query answers from an index, and long lists come page by page.

import type { Database } from 'bun:sqlite'
import { msOfId } from '../base/ids.ts'
import { openReader } from './database.ts'
import { OPERATOR_ID_MAX, SHORTFALL } from './operator-accounts.ts'

export interface AccountView {
  readonly id: bigint
  readonly name: string
  readonly kind: string
  readonly balance: bigint
  readonly held: bigint
  readonly credit_limit: bigint
  readonly keeps_bodies: bigint
  readonly frozen_ms: bigint | null
  readonly created_ms: bigint
}

export interface KeyView {
  readonly id: bigint
  readonly account_id: bigint
  readonly name: string
  readonly suffix: string
  readonly tier: string
  readonly qpm: bigint | null
  readonly clamps: bigint
  readonly strict: bigint
  readonly keeps_bodies: bigint
  readonly explains: bigint
  readonly allows: string | null
  readonly denies: string | null
  readonly requires: string | null
  readonly revoked_ms: bigint | null
}

export interface BudgetView {
  readonly scope_id: bigint
  readonly span: 'total' | 'day' | 'month'
  readonly cap: bigint
  readonly spent: bigint
  readonly held: bigint
  readonly period: bigint
}

/** One line of a statement. A charge is dated by its call's beginning, the rest by when they were made. */
export interface StatementLine {
  readonly kind: string
  readonly ref: bigint
  readonly debit: bigint
  readonly credit: bigint
  readonly amount: bigint
  readonly atMs: number
  readonly reference: string | null
  readonly author: string | null
}

export interface StatementCursor {
  readonly beforeSeq: number
  readonly beforeCall: number
}

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
  /** Of customers, of all of them together: the other side of what the operator's own accounts have. */
  readonly balance: bigint
  readonly shortfall: bigint
  /** Tasks that an upstream works on. */
  readonly tasks: number
}

/** Calls that are looked at for one page of a statement. */
export const ROWS_A_PAGE = 5_000
const KEYS_SHOWN_MAX = 100
const PRICES_SHOWN_MAX = 1_000

const fromTheStart: StatementCursor = { beforeSeq: Number.MAX_SAFE_INTEGER, beforeCall: Number.MAX_SAFE_INTEGER }

type Raw = Record<string, bigint | string | null>

export class BooksReader {
  readonly #path: string
  #opened: Database | undefined

  constructor(path: string) {
    this.#path = path
  }

  get #db(): Database {
    this.#opened ??= openReader(this.#path)
    return this.#opened
  }

  account(id: number): AccountView | undefined {
    return this.#one<AccountView>(
      `SELECT id, name, kind, balance, held, credit_limit, keeps_bodies, frozen_ms, created_ms
       FROM account WHERE id = ?1`,
      [id],
    )
  }

  key(id: number): KeyView | undefined {
    return this.#one<KeyView>(
      `SELECT id, account_id, name, suffix, tier, qpm, clamps, keeps_bodies, strict, explains, allows, denies, requires,
         revoked_ms FROM api_key WHERE id = ?1`,
      [id],
    )
  }

  keysOf(accountId: number): readonly KeyView[] {
    return this.#all<KeyView>(
      `SELECT id, account_id, name, suffix, tier, qpm, clamps, keeps_bodies, strict, explains, allows, denies, requires,
         revoked_ms FROM api_key WHERE account_id = ?1 ORDER BY id LIMIT ?2`,
      [accountId, KEYS_SHOWN_MAX],
    )
  }

  /** Of an account and of its keys, or of one key. */
  budgets(scopeId: number): readonly BudgetView[] {
    return this.#all<BudgetView>(
      `SELECT scope_id, span, cap, spent, held, period FROM budget
       WHERE scope_id = ?1 OR scope_id IN (SELECT id FROM api_key WHERE account_id = ?1) ORDER BY scope_id, span`,
      [scopeId],
    )
  }

  transfersOf(ref: number): readonly StatementLine[] {
    const rows = this.#all<Raw>(
      `SELECT kind, ref, debit, credit, amount, made_ms, reference, author FROM transfer WHERE ref = ?1 ORDER BY seq`,
      [ref],
    )
    return rows.map(row => lineOf(row, Number(row.made_ms)))
  }

  /**
   * Newest first, and where the next page begins. Charges are found by the records of their calls, the few others by
   * their own indexes. Many free calls in a row may make a page short.
   */
  statement(accountId: number, limit: number, cursor = fromTheStart): [readonly StatementLine[], StatementCursor?] {
    const others = this.#all<Raw>(BooksReader.othersSql, [accountId, cursor.beforeSeq, limit])
    const walked = [accountId, cursor.beforeCall, ROWS_A_PAGE]
    const charges = this.#all<Raw>(BooksReader.chargesSql, [...walked, limit])
    const end = charges.length === limit ? undefined : this.#one<Raw>(BooksReader.walkedSql, walked)
    const endMs = end === undefined ? 0 : msOfId(Number(end.call_id))
    const lines: StatementLine[] = []
    let { beforeSeq, beforeCall } = cursor
    let [other, charge] = [others[0], charges[0]]
    for (let [at, atCharge] = [0, 0]; lines.length < limit; ) {
      const callMs = charge === undefined ? endMs : msOfId(Number(charge.ref))
      if (other !== undefined && Number(other.made_ms) >= callMs) {
        lines.push(lineOf(other, Number(other.made_ms)))
        beforeSeq = Number(other.seq)
        other = others[++at]
      } else if (charge !== undefined) {
        lines.push(lineOf(charge, callMs))
        beforeCall = Number(charge.ref)
        charge = charges[++atCharge]
      } else if (end === undefined) return [lines]
      else return [lines, { beforeSeq, beforeCall: Number(end.call_id) }]
    }
    return [lines, { beforeSeq, beforeCall }]
  }

  static readonly othersSql = `
    SELECT seq, kind, ref, debit, credit, amount, made_ms, reference, author FROM transfer
      WHERE credit = ?1 AND kind <> 'charge' AND seq < ?2
    UNION ALL
    SELECT seq, kind, ref, debit, credit, amount, made_ms, reference, author FROM transfer
      WHERE debit = ?1 AND kind <> 'charge' AND seq < ?2
    ORDER BY seq DESC LIMIT ?3`

  static readonly chargesSql = `
    SELECT t.kind, t.ref, t.debit, t.credit, t.amount, t.made_ms, t.reference, t.author
    FROM (SELECT call_id FROM record WHERE account_id = ?1 AND call_id < ?2 ORDER BY call_id DESC LIMIT ?3) r
      JOIN transfer t ON t.ref = r.call_id AND t.kind = 'charge'
    ORDER BY r.call_id DESC LIMIT ?4`

  static readonly walkedSql =
    'SELECT call_id FROM record WHERE account_id = ?1 AND call_id < ?2 ORDER BY call_id DESC LIMIT 1 OFFSET ?3 - 1'

  /** Every version of one model's price, or the last of each model. */
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
    const row = this.#one<Raw>(
      `SELECT (SELECT count(*) FROM hold) AS holds, (SELECT coalesce(sum(amount), 0) FROM hold) AS held,
         (SELECT -balance FROM account WHERE id = ?1) AS shortfall,
         (SELECT -sum(balance) FROM account WHERE id <= ?2) AS balance,
         (SELECT count(*) FROM task WHERE due_ms IS NOT NULL) AS tasks`,
      [SHORTFALL, OPERATOR_ID_MAX],
    )!
    const money = { held: row.held as bigint, shortfall: row.shortfall as bigint, balance: row.balance as bigint }
    return { openHolds: Number(row.holds), tasks: Number(row.tasks), ...money }
  }

  close(): void {
    this.#opened?.close()
  }

  #one<Row>(sql: string, values: (string | number | null)[]): Row | undefined {
    return this.#db.query<Row, (string | number | null)[]>(sql).get(...values) ?? undefined
  }

  #all<Row>(sql: string, values: (string | number | null)[]): readonly Row[] {
    return this.#db.query<Row, (string | number | null)[]>(sql).all(...values)
  }
}

function lineOf(row: Raw, atMs: number): StatementLine {
  return {
    kind: row.kind as string,
    ref: row.ref as bigint,
    debit: row.debit as bigint,
    credit: row.credit as bigint,
    amount: row.amount as bigint,
    atMs,
    reference: row.reference as string | null,
    author: row.author as string | null,
  }
}
