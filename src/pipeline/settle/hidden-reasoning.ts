// What a model may have thought without showing it: of which calls, and the most that it can have come to. A stream
// tells it only at its end, so that a call which is cut before that is charged by the time that it took.

import type { Traits } from '../../base/money/model-traits.ts'
import { noTraits, tokensPerSecondDefault } from '../../base/money/model-traits.ts'
import { outputTokens } from '../../base/money/usage.ts'
import { estimateTokens } from '../../billing/price.ts'
import type { Conversation } from '../../protocols/neutral/conversation.ts'
import type { Ending, Exchange, Hold } from '../exchange.ts'
import { runsTools } from '../exchange.ts'
import type { Meter } from './usage-meter.ts'
import { silentMs } from './usage-meter.ts'

type Thought = Pick<Exchange, 'route' | 'meter' | 'call' | 'unthinking'>

const traitsOf = ({ route }: Thought): Traits => route?.model.traits ?? route?.provider.traits ?? noTraits

/** A model of which nobody wrote down how it thinks may do so, unless its stream shows that it thinks aloud. */
export function mayThinkUnseen(exchange: Thought): boolean {
  const { route, meter, unthinking } = exchange
  // Only dialects that carry a conversation have models that think; and what is free need not be counted.
  if (route?.price === undefined || route.spoken.codec === undefined) return false
  const traits = traitsOf(exchange)
  return traits.thinking !== 'none' && unthinking !== true && !showsAll(traits, route.spoken.sumsUpThoughts, meter)
}

function showsAll({ hidesThinking }: Traits, sumsUp: boolean | undefined, { thoughtBytes }: Meter): boolean {
  return hidesThinking === undefined ? !sumsUp && thoughtBytes > 0 : !hidesThinking
}

/** Whether only its upstream can still tell what the call came to: then it is read on without its caller. */
export function owesReport(exchange: Exchange): boolean {
  const { usage, content, outputBytes, reportedBytes } = exchange.meter
  const isTold = usage !== undefined && content && outputBytes <= reportedBytes && outputTokens(usage) > 0
  return !isTold && (seemsToThink(exchange) || worksUnseen(exchange))
}

/** A model of which nobody knows whether it thinks, and which never paused, has thought nothing that is not seen. */
function seemsToThink(exchange: Exchange): boolean {
  if (!mayThinkUnseen(exchange)) return false
  return traitsOf(exchange).thinking !== undefined || silentMs(exchange.meter, exchange.timings.nowMs()) > 0
}

/** What a model wrote for its tools is not seen in an answer that has not come. */
const worksUnseen = (exchange: Exchange): boolean =>
  runsTools(exchange) && !exchange.meter.content && exchange.route?.price !== undefined

/** The most that it can have thought since its last report, beyond these tokens of output and within the hold. */
export function hiddenTokens(exchange: Exchange, ending: Ending, known: number): number {
  const { hold, meter, timings, endedMs = timings.nowMs() } = exchange
  if (hold === undefined || !(mayThinkUnseen(exchange) || worksUnseen(exchange))) return 0
  const { outputTokensMax, thoughtTokensMax = 0, choices } = hold.size
  const rate = traitsOf(exchange).tokensPerSecondMax ?? tokensPerSecondDefault
  // A silence that we ended in the midst of an answer was its upstream's, and nobody knows that it thought.
  const isStalled = meter.content && ending.outcome === 'over_bound' && ending.error === 'upstream_too_slow'
  const untilMs = isStalled ? meter.heardMs : isUnheard(exchange) ? (exchange.leftMs ?? endedMs) : endedMs
  const most = Math.ceil((silentMs(meter, untilMs) / 1_000) * rate * choices)
  const unseen = most - estimateTokens(meter.thoughtBytes)
  return Math.max(0, Math.min(unseen, (outputTokensMax + thoughtTokensMax) * choices - known))
}

/**
 * An upstream that never said anything may hang. Of a model that is not known to think, a caller that left pays only
 * for the time in which it waited itself.
 */
const isUnheard = (exchange: Exchange): boolean => !exchange.meter.content && traitsOf(exchange).thinking === undefined

/** Whether what goes upstream turns thinking off, at a model that is known to obey. */
export function isUnthinking({ route, call }: Hold, exchange: Exchange): boolean {
  const { thinking, stopsThinking } = traitsOf({ ...exchange, route })
  if (thinking === undefined || stopsThinking === false || (exchange.overrides?.length ?? 0) > 0) return false
  const { spoken } = route
  if (exchange.translation === undefined) return spoken.thinks?.(call.json) === false
  return exchange.said !== undefined && wishesNone(exchange.said, spoken.thinksOnlyIfAsked)
}

function wishesNone({ reasoning }: Conversation, onlyIfAsked: boolean | undefined): boolean {
  if (reasoning === undefined) return onlyIfAsked === true
  return reasoning.effort === 'none' || reasoning.budget === 0
}
