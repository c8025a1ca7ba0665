// Reads the account and the budgets of a key in one transaction, so that the figures fit together.

import type { Database } from 'bun:sqlite'
import { periodOf } from './budgets.ts'
import type { BudgetSpan } from './hold-types.ts'

export interface KeyAccount {
  readonly keyName: string
  readonly kind: 'prepaid' | 'postpaid'
  readonly balance: bigint
  readonly held: bigint
  readonly creditLimit: bigint
  readonly frozen: boolean
  readonly keepsBodies: boolean
  readonly budgets: readonly KeyBudget[]
}

export interface KeyBudget {
  readonly scope: 'key' | 'account'
  readonly span: BudgetSpan
  readonly cap: bigint
  readonly spent: bigint
  readonly held: bigint
}

type RawRow = Record<string, bigint | string | null>

export class AccountReader {
  readonly #db: Database
  readonly #findAccount
  readonly #findBudgets

  constructor(db: Database) {
    this.#db = db
    this.#findAccount = db.query<RawRow, [number]>(
      `SELECT k.name, a.id, a.kind, a.balance, a.held, a.credit_limit, a.frozen_ms,
         k.keeps_bodies OR a.keeps_bodies AS keeps_bodies
       FROM api_key k JOIN account a ON a.id = k.account_id WHERE k.id = ?1`,
    )
    this.#findBudgets = db.query<RawRow, [number, number]>(
      `SELECT scope_id, span, cap, spent, held, period FROM budget WHERE scope_id IN (?1, ?2)
       ORDER BY scope_id <> ?1, cap, span`,
    )
  }

  /** `nowMs` decides the current day and month; amounts that were spent in earlier periods are shown as zero. */
  findByKey(keyId: number, nowMs: number): KeyAccount | undefined {
    return this.#db.transaction(() => {
      const row = this.#findAccount.get(keyId)
      if (row === null) return undefined
      return {
        keyName: row.name as string,
        kind: row.kind as KeyAccount['kind'],
        balance: row.balance as bigint,
        held: row.held as bigint,
        creditLimit: row.credit_limit as bigint,
        frozen: row.frozen_ms !== null,
        keepsBodies: row.keeps_bodies === 1n,
        budgets: this.#findBudgets.all(keyId, Number(row.id)).map(budget => budgetRow(budget, keyId, nowMs)),
      }
    })()
  }
}

function budgetRow(row: RawRow, keyId: number, nowMs: number): KeyBudget {
  const span = row.span as BudgetSpan
  return {
    scope: Number(row.scope_id) === keyId ? 'key' : 'account',
    span,
    cap: row.cap as bigint,
    spent: (row.period as bigint) < periodOf(span, nowMs) ? 0n : (row.spent as bigint),
    held: row.held as bigint,
  }
}
