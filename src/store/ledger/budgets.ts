// Budgets of keys and accounts, in total or per day or month. They are checked and updated in the transactions of hold
// and settle. A call counts in the period in which it is settled. Most keys have no budget and cost one look-up in a
// set.

import type { Database } from 'bun:sqlite'
import { assert } from '../../base/assert.ts'
import { DAY_MS } from '../../base/time.ts'
import type { BudgetSpan } from './hold-types.ts'

interface BudgetEntry {
  readonly span: BudgetSpan
  readonly cap: bigint
  readonly spent: bigint
  readonly held: bigint
  readonly period: bigint
}

export interface BudgetScope {
  readonly keyId: number
  readonly accountId: number
}

/** The number of the current period in UTC: days since 1970, months since year 0, or always 0 for `total`. */
export function periodOf(span: BudgetSpan, nowMs: number): bigint {
  if (span === 'total') return 0n
  if (span === 'day') return BigInt(Math.floor(nowMs / DAY_MS))
  const date = new Date(nowMs)
  return BigInt(date.getUTCFullYear() * 12 + date.getUTCMonth())
}

export class Budgets {
  readonly #nowMs: () => number
  readonly #scopesWithBudget = new Set<number>()
  readonly #list
  readonly #listScopes
  readonly #startPeriod
  readonly #hold
  readonly #settle

  constructor(db: Database, nowMs: () => number) {
    this.#nowMs = nowMs
    this.#list = db.query('SELECT span, cap, spent, held, period FROM budget WHERE scope_id = ?1')
    this.#listScopes = db.query('SELECT DISTINCT scope_id FROM budget')
    this.#startPeriod = db.query(
      'UPDATE budget SET spent = 0, period = ?3, ceiling = max(cap, held) WHERE scope_id = ?1 AND span = ?2',
    )
    this.#hold = db.query('UPDATE budget SET held = held + ?2 WHERE scope_id = ?1')
    this.#settle = db.query('UPDATE budget SET held = held - ?2, spent = spent + ?3 WHERE scope_id = ?1')
    this.reload()
  }

  reload(): void {
    this.#scopesWithBudget.clear()
    for (const row of this.#listScopes.all() as { scope_id: bigint }[]) this.#scopesWithBudget.add(Number(row.scope_id))
  }

  /** The smallest amount that a budget of the key or account has left, and its name; undefined without budgets. */
  remaining(scope: BudgetScope): { readonly available: bigint; readonly budget: string } | undefined {
    let smallest: { available: bigint; budget: string } | undefined
    for (const [owner, id] of [
      ['key', scope.keyId],
      ['account', scope.accountId],
    ] as const) {
      if (!this.#scopesWithBudget.has(id)) continue
      for (const { span, cap, spent, held } of this.#current(id)) {
        const available = cap - spent - held
        if (smallest === undefined || available < smallest.available)
          smallest = { available, budget: `${owner}, ${span}` }
      }
    }
    return smallest
  }

  /** Reserves an amount. The caller has checked with remaining() that it fits. */
  hold({ keyId, accountId }: BudgetScope, amount: bigint): void {
    if (this.#scopesWithBudget.has(keyId)) this.#hold.run(keyId, amount)
    if (this.#scopesWithBudget.has(accountId)) this.#hold.run(accountId, amount)
  }

  settle({ keyId, accountId }: BudgetScope, held: bigint, spent: bigint): void {
    for (const id of [keyId, accountId]) {
      if (!this.#scopesWithBudget.has(id)) continue
      this.#current(id)
      this.#settle.run(id, held, spent)
    }
  }

  /** Notes that a key or account has a budget now. */
  add(scopeId: number): void {
    this.#scopesWithBudget.add(scopeId)
  }

  /** Reads the budgets of a scope and starts a new period where the old one is over, unless the clock went back. */
  #current(scopeId: number): readonly BudgetEntry[] {
    const nowMs = this.#nowMs()
    const rows = this.#list.all(scopeId) as BudgetEntry[]
    return rows.map(row => {
      const period = periodOf(row.span, nowMs)
      if (period <= row.period) return row
      assert(this.#startPeriod.run(scopeId, row.span, period).changes === 1, 'a budget that was read must exist')
      return { ...row, spent: 0n, period }
    })
  }
}
