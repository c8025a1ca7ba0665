// Whether others than one account are there, too: the last two that were seen tell it.

/** What was longer ago proves nothing. */
const LATELY_MS = 10_000

export class Others {
  #last = Number.NaN
  #lastMs = -Infinity
  /** Of the last other than that. */
  #beforeMs = -Infinity

  note(accountId: number, nowMs: number): void {
    if (accountId !== this.#last) this.#beforeMs = this.#lastMs
    this.#last = accountId
    this.#lastMs = nowMs
  }

  areThere(accountId: number, nowMs: number): boolean {
    return nowMs - (accountId === this.#last ? this.#beforeMs : this.#lastMs) < LATELY_MS
  }
}
