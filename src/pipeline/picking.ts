// Where the next attempt goes: by what routing chooses, when there is a place, and within what may be tried again.

import type { Refusal } from '../base/errors.ts'
import { estimateTokens } from '../billing/price.ts'
import type { Verdict } from '../routing/attempts.ts'
import { choose } from '../routing/choose.ts'
import type { Exchange, Route, Way } from './exchange.ts'
import type { Berth } from './lanes.ts'

export interface Picked {
  readonly way: Way
  readonly seat: Berth
}

export interface PickingParts {
  readonly attemptsMax: number
  nowMs(): number
  chance(): number
}

export class Picking {
  readonly #parts: PickingParts

  constructor(parts: PickingParts) {
    this.#parts = parts
  }

  /** A call is to be forwarded. */
  begin(_exchange: Exchange): void {}

  /** Undefined when enough was tried. */
  async next(route: Route, exchange: Exchange): Promise<Picked | { readonly refusal: Refusal } | undefined> {
    const { attempts } = exchange
    const { attemptsMax, nowMs, chance } = this.#parts
    if (attempts.length >= attemptsMax) return undefined
    const { options, policy } = route
    const about = { options, policy, tried: attempts, tokens: this.tokensOf(exchange), nowMs: nowMs(), chance }
    const choice = choose(about)
    if (choice.kind === 'try') {
      const way = route.ways[options.indexOf(choice.option)]!
      return { way, seat: choice.seat as Berth }
    }
    return undefined
  }

  /** It has answered, so the conversation stays there. */
  answered(_exchange: Exchange, _picked: Picked): void {}

  /** A place may be free. */
  freed(_route: Route): void {}

  /** What the call is taken to use until that is known. */
  tokensOf({ call }: Exchange): number {
    const { inputBytes = 0, outputTokensMax = TYPICAL_OUTPUT } = call ?? {}
    return estimateTokens(inputBytes) + Math.min(outputTokensMax, TYPICAL_OUTPUT)
  }

  /** The call is over. */
  over({ turn, ending }: Exchange): void {
    turn?.end({ verdict: ending === undefined ? 'left' : verdictOf(ending.outcome) })
  }
}

const TYPICAL_OUTPUT = 1_024

/** What the end of an opened answer says of its channel. */
function verdictOf(outcome: string): Verdict | 'left' {
  if (outcome === 'completed') return 'answered'
  return outcome === 'upstream_failed' ? 'broken' : 'left'
}
