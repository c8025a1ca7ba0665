// Computes the largest size that a call can have on a target: its tokens, choices, searches and tool uses.

import type { CallSize } from '../../billing/price.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Capabilities, Model } from '../../upstreams/provider.ts'
import type { Candidate } from '../exchange.ts'
import { maxToolUses } from '../settle/tool-uses.ts'

/** For a model whose limits are unknown. */
const OUTPUT_TOKENS_UNKNOWN = 32_768
const CONTEXT_TOKENS_UNKNOWN = 131_072
/** The most reasoning tokens of a model whose output cap does not include them. */
const THOUGHT_TOKENS_MAX = 32_768

export function sizeOn(candidate: Omit<Candidate, 'size'>, call: Call): CallSize {
  const { model, provider, withoutSearch } = candidate
  const size = sizeOf(withoutSearch ? { ...call, searchesMax: 0 } : call, model, provider.can)
  const uses = maxToolUses(candidate, call, size.searchesMax > 0)
  return uses === undefined ? size : { ...size, units: { ...size.units, ...uses } }
}

type Capped = Pick<Capabilities, 'capsThought'>

/**
 * A provider refuses input that exceeds the model's context, so the context bounds the input. Text in the body has at
 * most one token per byte. What is fetched or measured elsewhere (an image, a file, a search) has no such bound.
 */
export function sizeOf(call: Call, { contextTokens, outputTokensMax: own }: Model, can: Capped): CallSize {
  const { textOnly, choices, searchesMax, outputTokensMax: asked } = call
  return {
    inputTokensMax: call.inputTokensMax ?? inputMax(call, contextTokens),
    outputTokensMax: own === undefined ? (asked ?? OUTPUT_TOKENS_UNKNOWN) : Math.min(asked ?? own, own),
    thoughtTokensMax: call.thoughtTokensMax ?? (can.capsThought || asked === 0 ? 0 : thoughtMax(own)),
    choices,
    searchesMax,
    textOnly,
    ...(call.units && { units: call.units }),
  }
}

const thoughtMax = (own = THOUGHT_TOKENS_MAX): number => Math.min(own, THOUGHT_TOKENS_MAX)

function inputMax({ textOnly, bodyBytes }: Call, contextTokens: number | undefined): number {
  if (textOnly) return Math.min(bodyBytes, contextTokens ?? bodyBytes)
  return contextTokens ?? Math.max(bodyBytes, CONTEXT_TOKENS_UNKNOWN)
}
