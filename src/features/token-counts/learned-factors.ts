// Learns how many tokens a provider reports for each one that we count, of models whose counts somebody has asked us
// for: of their first calls, and then of one in a while. Nobody waits for it, and a call that is not counted in time
// is not learned from.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { inputTokens } from '../../base/money/usage.ts'
import type { CountTokens } from '../../billing/token-counter.ts'
import type { Exchange, Route } from '../../pipeline/exchange.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Codec } from '../../protocols/protocol.ts'
import type { Factors } from '../../vault/factors.ts'
import { promptOf } from './prompt-text.ts'

export interface Learning {
  /** Somebody wants to know how long requests to this model are. */
  want(model: string): void
  /** Before the call is forwarded: afterwards its words are gone. */
  begin(exchange: Exchange): void
  /** The call is over. */
  end(exchange: Exchange): void
}

export interface LearningParts {
  readonly factors: Pick<Factors, 'learn' | 'factor'>
  readonly countTokens: CountTokens
}

/** A factor is worth something after a few. */
const FIRST_CALLS = 16
const EACH_CALLS = 50

export const fullName = ({ provider, model }: Pick<Route, 'provider' | 'model'>): string => `${provider.id}/${model.id}`

export function buildLearning({ factors, countTokens }: LearningParts): Learning {
  /** How many calls each model has had since it was wanted. */
  const wanted = new Map<string, number>()

  function want(model: string): void {
    if (!wanted.has(model) && wanted.size < bounds.countFactorsMax) wanted.set(model, 0)
  }

  /** Whether this call of the model is one to learn from. */
  function isDue(model: string): boolean {
    const calls = wanted.get(model)
    if (calls === undefined) {
      if (factors.factor(model).samples > 0) want(model) // it was before we were started
      return false
    }
    wanted.set(model, calls + 1)
    return calls < FIRST_CALLS || calls % EACH_CALLS === 0
  }

  return {
    want,
    begin(exchange) {
      const { route, call, protocol } = exchange
      if (route === undefined || call === undefined || protocol.codec === undefined) return
      if (!isDue(fullName(route)) || !isWhole(call)) return
      const prompt = promptIn(call, protocol.codec)
      if (prompt === undefined) return
      exchange.counted = countTokens(Buffer.from(prompt.text)).then(count =>
        count === undefined || count.uncountedBytes > 0 ? undefined : count.tokens + prompt.overhead,
      )
    },
    end({ counted, meter, route }) {
      const { usage, finished } = meter
      if (counted === undefined || usage === undefined || !finished) return
      const reported = inputTokens(usage)
      void counted.then(tokens => {
        if (tokens !== undefined) factors.learn(fullName(route!), tokens, reported)
      })
    },
  }
}

/** All that the model reads stands in it, and it is short enough. */
function isWhole({ textOnly, bodyBytes, state }: Call): boolean {
  const goesOn = state?.previous !== undefined || state?.conversation !== undefined
  return textOnly && bodyBytes <= bounds.countLearnedBytesMax && !goesOn
}

function promptIn(call: Call, codec: Codec): ReturnType<typeof promptOf> | undefined {
  try {
    return promptOf(codec.readConversation(call))
  } catch (fault) {
    if (fault instanceof Refusal) return undefined
    throw fault
  }
}
