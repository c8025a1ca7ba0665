// Whether a channel answers others than one account: the last two that it has answered tell it.

/** What was longer ago proves nothing. */
const LATELY_MS = 10_000

export class Others {
  #last = Number.NaN
  #lastMs = -Infinity
  /** Of the last other than that. */
  #beforeMs = -Infinity

  noteAnswered(accountId: number, nowMs: number): void {
    if (accountId !== this.#last) this.#beforeMs = this.#lastMs
    this.#last = accountId
    this.#lastMs = nowMs
  }

  areAnswered(accountId: number, nowMs: number): boolean {
    return nowMs - (accountId === this.#last ? this.#beforeMs : this.#lastMs) < LATELY_MS
  }
}
