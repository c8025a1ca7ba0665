// Tells whether accounts other than a given one were seen lately. Remembering the last two accounts is enough.

/** An account counts for this long after it was seen. */
const RECENT_MS = 10_000

export class OtherAccounts {
  #lastAccount = Number.NaN
  #lastMs = -Infinity
  /** When the last account other than #lastAccount was seen. */
  #otherMs = -Infinity

  note(accountId: number, nowMs: number): void {
    if (accountId !== this.#lastAccount) this.#otherMs = this.#lastMs
    this.#lastAccount = accountId
    this.#lastMs = nowMs
  }

  wereSeen(accountId: number, nowMs: number): boolean {
    return nowMs - (accountId === this.#lastAccount ? this.#otherMs : this.#lastMs) < RECENT_MS
  }
}
