// What is known of one credential: how many calls it has, how its last ones went, and until when it is left alone.

import type { Verdict } from './attempts.ts'

/** What an operator says that a credential may be asked for; what is absent is not capped. */
export interface Caps {
  readonly requestsPerMinute?: number
  readonly tokensPerMinute?: number
  readonly concurrency?: number
}

/** What an upstream's own headers say of its limits. */
export interface ToldLimit {
  readonly resource: 'requests' | 'tokens'
  readonly limit?: number
  readonly remaining?: number
  readonly resetMs?: number
}

/** How an attempt ended. */
export interface Fate {
  /** `left`: nobody waited for it any more, which says nothing of the channel. */
  readonly verdict: Verdict | 'left'
  /** From sending to the first content, or to a whole plain answer. */
  readonly firstMs?: number | undefined
  /** What the upstream asked for, as far as it can be believed. */
  readonly retryAfterMs?: number | undefined
  readonly told?: readonly ToldLimit[] | undefined
}

/** One attempt under way on a credential. Ends once; a second end is nothing. */
export interface Turn {
  /** Its first content is there: it may last for minutes, and has proved its channel well. */
  answered(firstMs: number, nowMs: number): void
  end(fate: Fate, nowMs: number): void
}

export interface HealthParts {
  readonly caps: Caps
  /** From 0 to 1. */
  chance(): number
  /** Its provider refuses the credential: it is left alone, and somebody should know. */
  onCredentialOff?(): void
}

export class Health {
  caps: Caps
  #underWay = 0

  constructor({ caps }: HealthParts) {
    this.caps = caps
  }

  get underWay(): number {
    return this.#underWay
  }

  begin(_tokens: number, _nowMs: number): Turn {
    this.#underWay++
    let ended = false
    return {
      answered: () => {},
      end: () => {
        if (!ended) this.#underWay--
        ended = true
      },
    }
  }
}
