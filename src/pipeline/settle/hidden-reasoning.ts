// Estimates reasoning that a model does not show. A stream reports it only at its end, so a call that is stopped
// earlier is charged by the time that it took.

import type { ModelTraits } from '../../base/money/model-traits.ts'
import { noTraits, tokensPerSecondDefault } from '../../base/money/model-traits.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'
import { estimateTokens } from '../../billing/price.ts'
import type { Conversation } from '../../protocols/neutral/conversation.ts'
import type { Attempt, CallEnding, Exchange, Hold } from '../exchange.ts'
import { outputLimit, runsTools } from '../exchange.ts'
import { isInputUnbounded } from '../route/call-size.ts'
import type { UsageMeter } from './usage-meter.ts'
import { silentMs } from './usage-meter.ts'

const traitsOf = ({ candidate }: Pick<Attempt, 'candidate'>): ModelTraits =>
  candidate?.model.traits ?? candidate?.provider.traits ?? noTraits

/** A model whose reasoning is not documented may reason unseen, unless its stream shows its reasoning. */
export function mayReasonUnseen({ candidate, meter, reasoningOff }: Attempt): boolean {
  // Only models of conversations reason, and free calls need no count.
  if (candidate?.price === undefined || candidate.upstreamProtocol.codec === undefined) return false
  const traits = traitsOf({ candidate })
  return (
    traits.thinking !== 'none' &&
    !reasoningOff &&
    !showsReasoning(traits, candidate.upstreamProtocol.showsThoughtSummaries, meter)
  )
}

function showsReasoning(
  { hidesThinking }: ModelTraits,
  sumsUp: boolean | undefined,
  { thoughtBytes }: UsageMeter,
): boolean {
  return hidesThinking === undefined ? !sumsUp && thoughtBytes > 0 : !hidesThinking
}

/** Whether only the upstream can still report the usage; then its answer is read to the end without the caller. */
export function awaitsReport(exchange: Exchange): boolean {
  const { usage, content, outputBytes, reportedBytes } = exchange.attempt.meter
  const isReported = usage !== undefined && content && outputBytes <= reportedBytes && outputTokens(usage) > 0
  return !isReported && (seemsToReason(exchange) || readsUnknownInput(exchange))
}

/**
 * Whether only a report can tell what the input costs. A caller that has read the answer could otherwise leave before
 * the report, and pay for a small part of its files, or of what tools of the provider have read.
 */
export function readsUnknownInput(exchange: Exchange): boolean {
  const { attempt, call } = exchange
  const { candidate, meter } = attempt
  if (candidate?.price === undefined || call === undefined) return false
  // The context is read again after each use of a tool, so that no report but the last one counts.
  if (runsTools(exchange)) return true
  return isInputUnbounded(candidate, call) && (meter.usage === undefined || inputTokens(meter.usage) === 0)
}

/** A model of unknown behaviour that never paused has not reasoned unseen. */
function seemsToReason({ attempt, timings }: Exchange): boolean {
  if (!mayReasonUnseen(attempt)) return false
  return traitsOf(attempt).thinking !== undefined || silentMs(attempt.meter, timings.nowMs()) > 0
}

/** What a model wrote for the provider's tools is invisible in an answer that has not arrived. */
const runsToolsUnseen = (exchange: Exchange): boolean =>
  runsTools(exchange) && !exchange.attempt.meter.content && exchange.attempt.candidate?.price !== undefined

/** The most tokens of unseen reasoning since the last report, beyond `known` output tokens and within the hold. */
export function hiddenTokens(exchange: Exchange, ending: CallEnding, known: number): number {
  const { hold, attempt, timings } = exchange
  const { endedMs = timings.nowMs() } = exchange.settlement
  const { candidate, meter } = attempt
  if (hold === undefined || candidate === undefined || !(mayReasonUnseen(attempt) || runsToolsUnseen(exchange)))
    return 0
  const { choices } = candidate.size
  const rate = traitsOf(attempt).tokensPerSecondMax ?? tokensPerSecondDefault
  // A stalled stream that the gateway ended in the middle was silent for the upstream's own reasons.
  const isStalled = meter.content && ending.outcome === 'over_bound' && ending.error === 'upstream_too_slow'
  const untilMs = isStalled
    ? meter.lastOutputMs
    : isSilent(attempt)
      ? (exchange.lifetime.callerGoneMs ?? endedMs)
      : endedMs
  const maxTokens = Math.ceil((silentMs(meter, untilMs) / 1_000) * rate * choices)
  const unseen = maxTokens - estimateTokens(meter.thoughtBytes)
  return Math.max(0, Math.min(unseen, outputLimit(exchange, candidate) - known))
}

/**
 * An upstream that never sent anything may hang. For a model that is not known to reason, a caller that disconnected
 * pays only for the time until then.
 */
export const isSilent = (attempt: Attempt): boolean =>
  !attempt.meter.content && traitsOf(attempt).thinking === undefined

/** Whether the upstream request turns reasoning off, for a model that is known to obey. */
export function isReasoningOff({ call }: Hold, { attempt, conversation }: Exchange): boolean {
  const { thinking, stopsThinking } = traitsOf(attempt)
  if (thinking === undefined || stopsThinking === false || (attempt.overrides?.length ?? 0) > 0) return false
  const { upstreamProtocol } = attempt.candidate!
  if (attempt.translation === undefined) return upstreamProtocol.asksForThinking?.(call.json) === false
  return conversation !== undefined && wantsNoReasoning(conversation, upstreamProtocol.thinksOnlyIfAsked)
}

function wantsNoReasoning({ reasoning }: Conversation, onlyIfAsked: boolean | undefined): boolean {
  if (reasoning === undefined) return onlyIfAsked === true
  return reasoning.effort === 'none' || reasoning.budget === 0
}
