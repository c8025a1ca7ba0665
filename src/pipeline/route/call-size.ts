// Computes the largest size that a call can have on a target: its tokens, choices, searches and tool uses.

import type { CallSize } from '../../billing/price.ts'
import { mediaTokensMax } from '../../protocols/media/media-tokens.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import { USES_MAX } from '../../protocols/request/services.ts'
import type { Capabilities, Model } from '../../upstreams/provider.ts'
import type { Candidate } from '../exchange.ts'
import { maxToolUses } from '../settle/tool-uses.ts'

/** For a model whose context is unknown. */
export const CONTEXT_TOKENS_UNKNOWN = 131_072

export function sizeOn(candidate: Omit<Candidate, 'size'>, call: Call): CallSize {
  const { model, provider, withoutSearch } = candidate
  // A model that its provider's file does not list has the traits of the provider.
  const known = model.traits === undefined ? { ...model, traits: provider.traits } : model
  const size = sizeOf(withoutSearch ? { ...call, searchesMax: 0 } : call, known, provider.can)
  const uses = maxToolUses(candidate, call, size.searchesMax > 0)
  return uses === undefined ? size : { ...size, units: { ...size.units, ...uses } }
}

/** The bounds of a call that another dialect may not keep: of searches, and a cap below the least one of the dialect. */
export function translatedBounds(
  call: Call,
  { upstreamProtocol, otherProtocols = [] }: Pick<Candidate, 'upstreamProtocol' | 'otherProtocols'>,
): Call {
  const { searchesMax, outputTokensMax } = call
  let least = upstreamProtocol.codec?.outputTokensMin ?? 0
  for (const { codec } of otherProtocols) least = Math.max(least, codec?.outputTokensMin ?? 0)
  const isRaised = outputTokensMax !== undefined && outputTokensMax < least
  if (searchesMax === 0 && !isRaised) return call
  return {
    ...call,
    ...(searchesMax > 0 && { searchesMax: Math.max(searchesMax, USES_MAX) }),
    ...(isRaised && { outputTokensMax: least }),
  }
}

type Capped = Pick<Capabilities, 'capsThought'>

/**
 * A provider refuses input that exceeds the model's context, so the context bounds the input. Text in the body has at
 * most one token per byte. Media have a bound if the provider file has rules for them. What comes from elsewhere (a
 * search, a stored conversation) has none.
 */
export function sizeOf(call: Call, model: Model, can: Capped): CallSize {
  const { textOnly, choices, searchesMax } = call
  const outputTokensMax = outputMax(call, model)
  return {
    inputTokensMax: call.inputTokensMax ?? inputMax(call, model),
    outputTokensMax,
    thoughtTokensMax: call.thoughtTokensMax ?? (can.capsThought ? 0 : thoughtMax(outputTokensMax, model)),
    choices,
    searchesMax,
    textOnly,
    ...(call.units && { units: call.units }),
  }
}

/** All that a model writes is part of its context, which bounds it where no other limit is known. */
function outputMax({ outputTokensMax: requested }: Call, { outputTokensMax: own, contextTokens }: Model): number {
  if (own !== undefined) return Math.min(requested ?? own, own)
  return requested ?? contextTokens ?? CONTEXT_TOKENS_UNKNOWN
}

/** The most reasoning of a model whose cap on the output does not include it: its largest budget, within its context. */
function thoughtMax(output: number, { traits, contextTokens = CONTEXT_TOKENS_UNKNOWN }: Model): number {
  if (output === 0) return 0
  return Math.max(0, Math.min(traits?.budgetMax ?? contextTokens, contextTokens - output))
}

/** Whether nothing but the context of the model bounds the input: files, tools of the provider, stored turns. */
export const isInputUnbounded = ({ model, size }: Pick<Candidate, 'model' | 'size'>, { textOnly }: Call): boolean =>
  !textOnly && size.inputTokensMax >= (model.contextTokens ?? CONTEXT_TOKENS_UNKNOWN)

function inputMax({ textOnly, bodyBytes, media, contextTokens: requested = 0 }: Call, model: Model): number {
  const { traits } = model
  const contextTokens = model.contextTokens === undefined ? undefined : Math.max(model.contextTokens, requested)
  if (textOnly) return Math.min(bodyBytes, contextTokens ?? bodyBytes)
  const mediaMax = media && traits?.mediaTokens && mediaTokensMax(media.items, traits.mediaTokens)
  if (mediaMax !== undefined) return Math.min(media!.textBytes + mediaMax, contextTokens ?? Infinity)
  return contextTokens ?? Math.max(bodyBytes, CONTEXT_TOKENS_UNKNOWN)
}
