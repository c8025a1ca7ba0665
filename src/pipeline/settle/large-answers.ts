// Remembers which accounts got an answer in pieces that are larger than a slice of their money. Such an answer cannot be
// stopped in time: the provider bills what nobody has paid for. For a while, the account's calls of this model reserve
// their highest possible cost, so that the same few cents do not cause the loss again and again.

import { bounds } from '../../base/bounds.ts'
import type { Candidate } from '../exchange.ts'

type Answerer = Pick<Candidate, 'provider' | 'model'>

export class LargeAnswers {
  /** Until when each is remembered. The oldest comes first. */
  readonly #untilMs = new Map<string, number>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  add(accountId: number, answerer: Answerer): void {
    const name = nameOf(accountId, answerer)
    this.#untilMs.delete(name)
    this.#untilMs.set(name, this.#nowMs() + bounds.largeAnswersMs)
    if (this.#untilMs.size > bounds.largeAnswersMax) this.#untilMs.delete(this.#untilMs.keys().next().value!)
  }

  has(accountId: number, answerer: Answerer): boolean {
    if (this.#untilMs.size === 0) return false // as in nearly all cases
    const untilMs = this.#untilMs.get(nameOf(accountId, answerer))
    return untilMs !== undefined && this.#nowMs() < untilMs
  }
}

const nameOf = (accountId: number, { provider, model }: Answerer): string => `${accountId} ${provider.id}/${model.id}`
