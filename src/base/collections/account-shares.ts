// So many of something at once, and of one account no more than its portion: what is there for all must not be had by
// one of them.

export interface PortionsMax {
  readonly all: number
  readonly each: number
}

export class Portions {
  readonly #max: PortionsMax
  readonly #taken = new Map<number, number>()
  #all = 0

  constructor(max: PortionsMax) {
    this.#max = max
  }

  /** Whether there was one. Each that was taken is given back once. */
  take(accountId: number): boolean {
    const taken = this.#taken.get(accountId) ?? 0
    if (this.#all >= this.#max.all || taken >= this.#max.each) return false
    this.#taken.set(accountId, taken + 1)
    this.#all++
    return true
  }

  giveBack(accountId: number): void {
    const left = this.#taken.get(accountId)! - 1
    if (left === 0) this.#taken.delete(accountId)
    else this.#taken.set(accountId, left)
    this.#all--
  }
}
