// Closed for a while after failures: five in a row, or half of at least twenty within ten seconds.
//
// A caller can make a channel fail by what it asks for. So failures that are all of one account, of a channel that
// answers others meanwhile, are held against the channel for that account alone.

import { Closing } from './half-open.ts'
import { Recent } from './recent-counts.ts'

const TIMES = { firstMs: 1_000, mostMs: 60_000 }
const IN_A_ROW = 5
const OF_LAST = 20
const PERCENT = 50

/** An attempt as a breaker sees it. */
export interface Tripper {
  readonly step: number
  readonly accountId: number
}

export interface Failure {
  readonly isProbe: boolean
  /** Of the credential at this time. */
  readonly steps: number
  readonly spread: number
  /** Whether others than this account were answered lately. */
  answersOthers(accountId: number): boolean
}

export class Breaker<By extends Tripper> {
  readonly #closing = new Closing<By>(TIMES)
  readonly #recent = new Recent()
  #inRow = 0
  /** Of whom all in the row are; undefined when they are of several. */
  #rowOf: number | undefined
  /** Of whom most of the recent failures may be, and by how many more than of all others. */
  #mostOf = 0
  #mostBy = 0

  leftMs(nowMs: number): number {
    return this.#closing.leftMs(nowMs)
  }

  passes(nowMs: number): boolean {
    return this.#closing.passes(nowMs)
  }

  enter(by: By, nowMs: number): void {
    this.#closing.enter(by, nowMs)
  }

  /** Whether it was the one that tried it. */
  leave(by: By): boolean {
    return this.#closing.leave(by)
  }

  noteWell(nowMs: number): void {
    this.#recent.note(false, nowMs)
  }

  /** The channel answers, whatever it says. */
  noteThere({ step }: Tripper): void {
    if (!this.#closing.isClosed) this.#inRow = 0
    if (!this.#closing.isBefore(step)) return
    this.#closing.open()
    this.#inRow = 0
    this.#recent.clear()
  }

  /** Gives the account for which alone it is to be closed. */
  noteFailed({ accountId }: Tripper, failure: Failure, nowMs: number): number | undefined {
    this.#count(accountId, nowMs)
    if (this.#closing.isClosed) {
      if (failure.isProbe) this.close(failure, nowMs)
      else this.#closing.extend(nowMs, failure.spread)
      return undefined
    }
    const bad = this.#recent.bad(nowMs)
    const all = bad + this.#recent.good(nowMs)
    const isRow = this.#inRow >= IN_A_ROW
    if (!isRow && !(all >= OF_LAST && bad * 100 >= all * PERCENT)) return undefined
    const culprit = isRow ? this.#rowOf : this.#mostBy * 2 > bad ? this.#mostOf : undefined
    if (culprit === undefined || !failure.answersOthers(culprit)) {
      this.close(failure, nowMs)
      return undefined
    }
    this.#inRow = 0
    this.#recent.clear()
    return culprit
  }

  close({ steps, spread }: Pick<Failure, 'steps' | 'spread'>, nowMs: number): void {
    this.#closing.close(nowMs, { step: steps, spread })
  }

  #count(accountId: number, nowMs: number): void {
    if (this.#recent.bad(nowMs) === 0) this.#mostBy = 0
    this.#recent.note(true, nowMs)
    this.#rowOf = this.#inRow === 0 || this.#rowOf === accountId ? accountId : undefined
    this.#inRow++
    if (this.#mostBy === 0) this.#mostOf = accountId
    this.#mostBy += this.#mostOf === accountId ? 1 : -1
  }
}
