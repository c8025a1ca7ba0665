// Learns how many tokens a provider reports for each token that the gateway counts, for models whose counts were asked
// for: from their first calls, later from every 50th. Nobody waits for it; a call that is counted too late is skipped.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { inputTokens } from '../../base/money/usage.ts'
import type { CountTokens } from '../../billing/token-counter.ts'
import type { Candidate, Exchange } from '../../pipeline/exchange.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Codec } from '../../protocols/protocol.ts'
import type { CountFactors } from '../../vault/count-factors.ts'
import { promptOf } from './prompt-text.ts'

export interface FactorLearning {
  /** A caller has requested a token count of this model. */
  track(model: string): void
  /** Called before the call is forwarded, because afterwards its body is freed. */
  begin(exchange: Exchange): void
  /** Called when the call is over. */
  end(exchange: Exchange): void
}

export interface FactorLearningParts {
  readonly factors: Pick<CountFactors, 'learn' | 'hasSamples'>
  readonly countTokens: CountTokens
}

/** A factor is useful after a few calls. */
const FIRST_CALLS = 16
const EVERY_CALLS = 50

export const fullModelName = ({ provider, model }: Pick<Candidate, 'provider' | 'model'>): string =>
  `${provider.id}/${model.id}`

export function buildFactorLearning({ factors, countTokens }: FactorLearningParts): FactorLearning {
  /** How many calls each model has had since its first count. */
  const wanted = new Map<string, number>()

  function want(model: string): void {
    if (!wanted.has(model) && wanted.size < bounds.countFactorsMax) wanted.set(model, 0)
  }

  /** Whether to learn from this call of the model. */
  function isDue(model: string): boolean {
    const calls = wanted.get(model)
    if (calls === undefined) {
      if (factors.hasSamples(model)) want(model) // it was counted before the last start
      return false
    }
    wanted.set(model, calls + 1)
    return calls < FIRST_CALLS || calls % EVERY_CALLS === 0
  }

  return {
    track: want,
    begin(exchange) {
      const { call, protocol } = exchange
      const { candidate } = exchange.attempt
      if (candidate === undefined || call === undefined || protocol.codec === undefined) return
      if (!isDue(fullModelName(candidate)) || !isWhole(call)) return
      const prompt = readPrompt(call, protocol.codec)
      if (prompt === undefined) return
      exchange.countedInput = countTokens(Buffer.from(prompt.text)).then(count =>
        count === undefined || count.uncountedBytes > 0 ? undefined : count.tokens + prompt.overhead,
      )
    },
    end({ countedInput, attempt }) {
      const { usage, finished } = attempt.meter
      if (countedInput === undefined || usage === undefined || !finished) return
      const reported = inputTokens(usage)
      void countedInput.then(tokens => {
        if (tokens !== undefined) factors.learn(fullModelName(attempt.candidate!), tokens, reported)
      })
    },
  }
}

/** The body has everything that the model reads, and is short enough. */
function isWhole({ textOnly, bodyBytes, state }: Call): boolean {
  const continues = state?.previous !== undefined || state?.conversation !== undefined
  return textOnly && bodyBytes <= bounds.countLearnedBytesMax && !continues
}

function readPrompt(call: Call, codec: Codec): ReturnType<typeof promptOf> | undefined {
  try {
    return promptOf(codec.readConversation(call))
  } catch (fault) {
    if (fault instanceof Refusal) return undefined
    throw fault
  }
}
