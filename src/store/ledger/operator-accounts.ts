// The operator's own accounts: the other side of every transfer. All calls credit the same few rows, so their new
// balances are summed up and written once, before each commit, instead of once a call.

import type { Database } from 'bun:sqlite'

export const REVENUE = 1
export const PROMO = 2
export const SHORTFALL = 3
export const CLEARING = 4

/** All of theirs are no greater, and all of customers are. */
export const OPERATOR_ID_MAX = 4

export class OperatorAccounts {
  readonly #add
  /** By id; what this transaction has moved so far. */
  readonly #moved: bigint[] = new Array<bigint>(OPERATOR_ID_MAX + 1).fill(0n)
  #touched = false

  constructor(db: Database) {
    this.#add = db.query('UPDATE account SET balance = balance + ?2 WHERE id = ?1')
  }

  move(id: number, amount: bigint): void {
    this.#moved[id]! += amount
    this.#touched = true
  }

  write(): void {
    if (!this.#touched) return
    for (let id = 1; id <= OPERATOR_ID_MAX; id++) if (this.#moved[id] !== 0n) this.#add.run(id, this.#moved[id]!)
    this.reset()
  }

  reset(): void {
    this.#moved.fill(0n)
    this.#touched = false
  }
}
