// The operator's own accounts, which are the other side of every transfer. All calls credit the same few rows, so the
// changes are summed up in memory and written once before each commit, instead of once per call.

import type { Database } from 'bun:sqlite'

export const REVENUE = 1
export const PROMO = 2
export const SHORTFALL = 3
export const CLEARING = 4

/** The limit of a balance in the table's CHECK, up or down: about two billion dollars. */
export const BALANCE_MAX = 2n ** 61n

/** Ids of operator accounts are at most this; ids of customer accounts are greater. */
export const OPERATOR_ID_MAX = 4

export class OperatorAccounts {
  readonly #addToBalance
  /** The change of each balance in this transaction so far, by account id. */
  readonly #changes: bigint[] = new Array<bigint>(OPERATOR_ID_MAX + 1).fill(0n)
  #hasChanges = false

  constructor(db: Database) {
    this.#addToBalance = db.query('UPDATE account SET balance = balance + ?2 WHERE id = ?1')
  }

  move(id: number, amount: bigint): void {
    this.#changes[id]! += amount
    this.#hasChanges = true
  }

  write(): void {
    if (!this.#hasChanges) return
    for (let id = 1; id <= OPERATOR_ID_MAX; id++)
      if (this.#changes[id] !== 0n) this.#addToBalance.run(id, this.#changes[id]!)
    this.reset()
  }

  reset(): void {
    this.#changes.fill(0n)
    this.#hasChanges = false
  }
}
