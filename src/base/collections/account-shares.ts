// Counts slots that all accounts share. One account cannot take more than its maximum, so that it cannot take them all.

export interface AccountSharesMax {
  readonly total: number
  readonly perAccount: number
}

export class AccountShares {
  readonly #max: AccountSharesMax
  readonly #taken = new Map<number, number>()
  #all = 0

  constructor(max: AccountSharesMax) {
    this.#max = max
  }

  /** Takes a slot; false if none is free. The owner must return each slot exactly once. */
  take(accountId: number): boolean {
    const taken = this.#taken.get(accountId) ?? 0
    if (this.#all >= this.#max.total || taken >= this.#max.perAccount) return false
    this.#taken.set(accountId, taken + 1)
    this.#all++
    return true
  }

  release(accountId: number): void {
    const left = this.#taken.get(accountId)! - 1
    if (left === 0) this.#taken.delete(accountId)
    else this.#taken.set(accountId, left)
    this.#all--
  }
}
