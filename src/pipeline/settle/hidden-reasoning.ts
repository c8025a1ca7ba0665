// Estimates what only a final report tells: reasoning that a model does not show, and input that is not in the request.
// A call that ends without this report is charged for its time, and for the input that was held.

import type { ModelTraits } from '../../base/money/model-traits.ts'
import { noTraits, tokensPerSecondDefault } from '../../base/money/model-traits.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'
import { estimateTokens, hasFee } from '../../billing/price.ts'
import type { Conversation } from '../../protocols/neutral/conversation.ts'
import { runsAtProvider } from '../../protocols/request/services.ts'
import type { Attempt, CallEnding, Exchange, Hold } from '../exchange.ts'
import { namesTools, outputLimit, runsTools } from '../exchange.ts'
import { isInputUnbounded } from '../route/call-size.ts'
import type { UsageMeter } from './usage-meter.ts'
import { silentMs, wasStalledByCaller } from './usage-meter.ts'

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
  if (hasFinalReport(exchange.attempt.meter)) return false
  return seemsToReason(exchange) || readsUnknownInput(exchange) || predictedTokens(exchange) > 0
}

/** The tokens that the caller predicts as the answer, where the upstream gets them. A translation leaves them out. */
function predictedTokens({ call, attempt: { candidate, meter } }: Exchange): number {
  const { predictedBytes = 0, dialect } = call ?? {}
  const isPredicted = predictedBytes > 0 && meter.content && candidate?.upstreamProtocol.name === dialect
  return isPredicted && candidate?.price !== undefined ? estimateTokens(predictedBytes) : 0
}

/**
 * What the model may have rejected of a prediction, beyond `known` output tokens and within the hold. Only a report tells
 * it, and what is not rejected is part of the output.
 */
export function rejectedTokens(exchange: Exchange, known: number): number {
  const { hold, attempt } = exchange
  const predicted = predictedTokens(exchange)
  if (predicted === 0 || hold === undefined || hasFinalReport(attempt.meter)) return 0
  return Math.max(0, Math.min(predicted, outputLimit(exchange, attempt.candidate!)) - known)
}

/** Whether a report came with the last content or after it. */
const hasFinalReport = ({ usage, content, outputBytes, reportedBytes }: UsageMeter): boolean =>
  usage !== undefined && content && outputBytes <= reportedBytes && outputTokens(usage) > 0

/**
 * Whether only a report can tell what the input costs. A caller that has read the answer could otherwise leave before
 * the report, and pay for a small part of its files, or of what tools of the provider have read.
 */
export function readsUnknownInput(exchange: Exchange): boolean {
  const { attempt, call } = exchange
  const { candidate, meter } = attempt
  if (candidate?.price === undefined || call === undefined) return false
  const isReported = meter.usage !== undefined && inputTokens(meter.usage) > 0
  const mayReadMore = runsTools(exchange) || isInputUnbounded(candidate, call)
  if (!isReported) return mayReadMore
  // The context is read again after each use of a tool and after a summary, so that no report but the last one counts.
  if (meter.readsAgain) return mayReadMore
  return runsTools(exchange) && !candidate.upstreamProtocol.showsReadingAgain
}

/**
 * The input that is charged at least: what was held, if only a final report could tell the input and none came, although
 * the model has read it. Otherwise 0. What is billed per unit is not billed in tokens as well.
 */
export function unreportedInput(exchange: Exchange, ending: CallEnding): number {
  const { hold, call, attempt } = exchange
  const { candidate, meter } = attempt
  if (hold === undefined || candidate?.price === undefined || hasFinalReport(meter)) return 0
  if (!meter.content && !mayHaveReadUnseen(exchange, ending)) return 0
  if (!readsUnknownInput(exchange) || hasFee(candidate.price.price, call?.units)) return 0
  // Audio and images of calls that are no conversation are measured by the gateway itself.
  if (candidate.upstreamProtocol.codec === undefined && !runsTools(exchange)) return 0
  return mayCallerCause(exchange, ending) ? candidate.size.inputTokensMax : 0
}

/**
 * A plain answer shows nothing before its end. Meanwhile, a server of the caller may have let the model read much, and
 * have got all that the caller wanted. An upstream that refuses or fails a call itself does not go on with it. Tools that
 * are billed by use run at the provider alone.
 */
function mayHaveReadUnseen(exchange: Exchange, { outcome }: CallEnding): boolean {
  const { call, attempt, lifetime, settlement, timings } = exchange
  const isEndedUpstream = outcome === 'refused' || outcome === 'upstream_failed'
  if (call?.stream !== false || isEndedUpstream || !namesTools(exchange)) return false
  if (!call.services!.some(service => service.unit === undefined && runsAtProvider(service))) return false
  return silentMs(attempt.meter, lifetime.callerGoneMs ?? settlement.endedMs ?? timings.nowMs()) > 0
}

/**
 * Whether a caller can cause this ending on purpose. Only the operator stops the gateway. An upstream that fails or is
 * silent can be the caller's doing only by a tool of the caller's choice, or if the caller did not read.
 */
function mayCallerCause(exchange: Exchange, { outcome, error }: CallEnding): boolean {
  if (exchange.lifetime.callerGoneMs !== undefined) return true
  if (outcome === 'drained') return false
  const hasUpstreamFailed = outcome === 'upstream_failed' || error === 'upstream_too_slow'
  return !hasUpstreamFailed || namesTools(exchange) || wasReaderSlow(exchange)
}

/** Whether the upstream may have broken off because the caller did not read. */
export const wasReaderSlow = ({ attempt: { meter }, settlement, timings }: Exchange): boolean =>
  meter.waitedMs > 0 && wasStalledByCaller(meter, settlement.endedMs ?? timings.nowMs())

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
  return conversation !== undefined && wantsNoReasoning(conversation, upstreamProtocol.thinksOnlyIfRequested)
}

function wantsNoReasoning({ reasoning }: Conversation, onlyIfRequested: boolean | undefined): boolean {
  if (reasoning === undefined) return onlyIfRequested === true
  return reasoning.effort === 'none' || reasoning.budget === 0
}
