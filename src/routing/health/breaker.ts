// The circuit breaker of a channel. It opens after five failures in a row, or when half of at least twenty attempts
// within ten seconds failed.
//
// A caller can provoke failures with its requests. So when one account causes the failures while the channel answers
// other accounts, the breaker stays closed and names that account, which then gets a breaker of its own.

import { Circuit } from './circuit.ts'
import { RecentCounts } from './recent-counts.ts'

const TIMES = { firstMs: 1_000, maxMs: 60_000 }
const FAILURES_IN_A_ROW = 5
const ATTEMPTS_MIN = 20
const FAILED_PERCENT = 50

/** An attempt as a breaker sees it. */
export interface BreakerCall {
  /** Attempts on a channel are numbered in the order in which they begin. */
  readonly step: number
  readonly accountId: number
}

export interface BreakerFailure {
  /** Whether the attempt was the probe of a half-open breaker. */
  readonly isProbe: boolean
  /** The number of the latest attempt on the channel. */
  readonly latestStep: number
  /** A random factor about 1. */
  readonly jitter: number
  /** Whether the channel has lately answered accounts other than this one. */
  answersOthers(accountId: number): boolean
}

export class Breaker<Call extends BreakerCall> {
  readonly #circuit = new Circuit<Call>(TIMES)
  readonly #recent = new RecentCounts()
  #failuresInRow = 0
  /** The account of all failures in the row; undefined when they are of several accounts. */
  #rowAccount: number | undefined
  /** Majority vote (Boyer–Moore): the account that may have most of the recent failures, and its lead over all others. */
  #majorityAccount = 0
  #majorityLead = 0

  remainingMs(nowMs: number): number {
    return this.#circuit.remainingMs(nowMs)
  }

  passes(nowMs: number): boolean {
    return this.#circuit.passes(nowMs)
  }

  beginCall(call: Call, nowMs: number): void {
    this.#circuit.beginCall(call, nowMs)
  }

  /** Whether the call was the probe. */
  endCall(call: Call): boolean {
    return this.#circuit.endCall(call)
  }

  noteSuccess(nowMs: number): void {
    this.#recent.note(false, nowMs)
  }

  /** The channel has answered, be it with an error. This closes the breaker if the attempt began after it opened. */
  noteReachable({ step }: BreakerCall): void {
    if (!this.#circuit.isTripped) this.#failuresInRow = 0
    if (!this.#circuit.isTrippedBefore(step)) return
    this.#circuit.reset()
    this.#failuresInRow = 0
    this.#recent.clear()
  }

  /** Returns the account that alone causes the failures, and that is to get a breaker of its own. */
  noteFailure({ accountId }: BreakerCall, failure: BreakerFailure, nowMs: number): number | undefined {
    this.#countFailure(accountId, nowMs)
    if (this.#circuit.isTripped) {
      if (failure.isProbe) this.trip(failure, nowMs)
      else this.#circuit.extend(nowMs, failure.jitter)
      return undefined
    }
    const failed = this.#recent.bad(nowMs)
    const all = failed + this.#recent.good(nowMs)
    const isRow = this.#failuresInRow >= FAILURES_IN_A_ROW
    if (!isRow && !(all >= ATTEMPTS_MIN && failed * 100 >= all * FAILED_PERCENT)) return undefined
    const majority = this.#majorityLead * 2 > failed ? this.#majorityAccount : undefined
    const culprit = isRow ? this.#rowAccount : majority
    if (culprit === undefined || !failure.answersOthers(culprit)) {
      this.trip(failure, nowMs)
      return undefined
    }
    this.#failuresInRow = 0
    this.#recent.clear()
    return culprit
  }

  /** Opens the circuit. */
  trip({ latestStep, jitter }: Pick<BreakerFailure, 'latestStep' | 'jitter'>, nowMs: number): void {
    this.#circuit.trip(nowMs, { step: latestStep, spread: jitter })
  }

  #countFailure(accountId: number, nowMs: number): void {
    if (this.#recent.bad(nowMs) === 0) this.#majorityLead = 0
    this.#recent.note(true, nowMs)
    this.#rowAccount = this.#failuresInRow === 0 || this.#rowAccount === accountId ? accountId : undefined
    this.#failuresInRow++
    if (this.#majorityLead === 0) this.#majorityAccount = accountId
    this.#majorityLead += this.#majorityAccount === accountId ? 1 : -1
  }
}
