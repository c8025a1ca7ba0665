// Hold → the upstream's answer, opened: tries channel after channel until one delivers its first content, or a whole
// plain answer. After that nothing is tried again.

import { Refusal } from '../base/errors.ts'
import type { Hint } from '../base/hints.ts'
import { hintOf } from '../base/hints.ts'
import { releaseBody } from '../protocols/neutral/call.ts'
import { extraBytesOf } from '../protocols/request/json-body.ts'
import type { AttemptResult, ChannelUse } from '../routing/health/health.ts'
import { withoutCandidate } from './30-route.ts'
import type { AttemptHead, AttemptParts } from './attempt/attempt.ts'
import { attempt } from './attempt/attempt.ts'
import type { OpenedResponse } from './attempt/open-response.ts'
import { AttemptFailed } from './attempt/open-response.ts'
import { releaseConversation } from './attempt/translation.ts'
import type { Exchange, Hold } from './exchange.ts'
import { asksForStream, newAttempt, runsTools } from './exchange.ts'
import type { ChannelPicker, NextPick, PickedChannel } from './route/channel-picker.ts'
import { noteHourCache } from './settle/cache-writes.ts'
import { newMeter } from './settle/usage-meter.ts'
import type { Timings } from './timings.ts'
import { routeNote } from './timings.ts'

export interface ForwardParts extends AttemptParts {
  readonly channelPicker: ChannelPicker
  /** Called with every call before it goes upstream, while its body is in memory. */
  onForward(exchange: Exchange): void
  onAttemptFailed(channelId: string, detail: string): void
}

export type Forward = (hold: Hold, exchange: Exchange) => Promise<OpenedResponse>

export function buildForward(parts: ForwardParts): Forward {
  const { channelPicker } = parts

  async function tryChannel(
    { candidate, targetChannel, channelUse, sinceMs }: PickedChannel,
    hold: Hold,
    exchange: Exchange,
  ): Promise<OpenedResponse> {
    const { timings, attempts } = exchange
    if (attempts.length > 0) exchange.attempt = newAttempt(candidate)
    else exchange.attempt.candidate = candidate
    exchange.attempt.meter.believed = { size: candidate.size, withTools: runsTools(exchange) }
    parts.reservations.begin(hold, exchange)
    const responseHead: AttemptHead = {}
    const use = new CallChannelUse(channelUse, channelPicker, timings)
    try {
      const opened = await attempt(parts, { hold, candidate, exchange, channel: targetChannel.channel, responseHead })
      const nowMs = timings.nowMs()
      attempts.push({
        channelId: targetChannel.id,
        model: candidate.option.name,
        verdict: 'answered',
        sinceMs,
        ms: nowMs - sinceMs,
        status: responseHead.status,
      })
      const firstMs = exchange.attempt.firstContentMs ?? nowMs
      exchange.settlement.firstContentMs = firstMs
      channelUse.noteAnswer({ firstContentMs: firstMs - sinceMs, upstreamLimits: responseHead.limits }, nowMs)
      exchange.attempt.channelUse = use // the end of the call ends the use, because only then its tokens are known
      // The caller left, and the call was settled while its answer was being opened.
      if (exchange.lifetime.isOver) use.end({ verdict: 'left' })
      return opened
    } catch (fault) {
      const failed = fault instanceof AttemptFailed ? fault : undefined
      const result = resultOf(exchange, failed)
      attempts.push({
        channelId: targetChannel.id,
        model: candidate.option.name,
        verdict: failed?.verdict ?? 'broken',
        sinceMs,
        ms: timings.nowMs() - sinceMs,
        status: responseHead.status,
        retryAfterMs: result.retryAfterMs,
        isRetryable: failed?.didNoWork ?? false,
      })
      use.end({ ...result, upstreamLimits: responseHead.limits })
      throw fault
    }
  }

  return async function forward(hold, exchange) {
    parts.onForward(exchange)
    if (asksForStream(hold)) hold.call.extraBytes = extraBytesOf(hold.call.body, hold.call.json)
    noteHourCache(hold)
    channelPicker.begin(hold.route, exchange)
    let { route } = hold
    for (let last: AttemptFailed | undefined; ; ) {
      exchange.lifetime.stop.throwIfStopped() // nothing was sent upstream yet, so there is nothing to pay for
      const picking = channelPicker.next(route, exchange)
      const picked = picking instanceof Promise ? await waiting(picking, exchange.timings) : picking
      if (picked === undefined || 'refusal' in picked) {
        throw finalRefusal(
          hold,
          (last ?? picked)?.refusal ?? new Refusal('no_channel', hold.route.group.requestedModel),
        )
      }
      try {
        const opened = await tryChannel(picked, hold, exchange)
        if (picked.candidate !== hold.route.candidates[0])
          exchange.timings.setNote('Route', routeNote(picked.candidate))
        channelPicker.onAnswered(exchange, picked)
        releaseBody(hold.call)
        releaseConversation(exchange)
        return opened
      } catch (fault) {
        const failed = fault instanceof AttemptFailed ? fault : undefined
        const isSent = exchange.attempt.meter.forwarded
        if (failed?.mayHaveRunTools) exchange.lifetime.stop.throwIfStopped()
        else discardMeter(exchange, failed)
        if (failed === undefined) throw fault
        parts.onAttemptFailed(picked.targetChannel.id, failed.message)
        if (failed.mayHaveRunTools) throw failed.refusal
        const isFinal = failed.verdict === 'caller_at_fault'
        if (isFinal && isSent) throw failed.refusal
        if (!isFinal || last === undefined) last = failed
        // Another candidate may speak the caller's dialect, where nothing must be translated.
        const others = isFinal ? withoutCandidate(route, picked.candidate) : route
        if (others === undefined) throw finalRefusal(hold, last.refusal, last.verdict === 'caller_at_fault')
        route = others
      }
    }
  }
}

async function waiting(picking: Promise<NextPick>, timings: Timings): Promise<NextPick> {
  const sinceMs = timings.nowMs()
  try {
    return await picking
  } finally {
    timings.addSpan('wait', sinceMs)
  }
}

/** The use of a channel by a call. Its end wakes calls that wait for a channel. */
class CallChannelUse {
  readonly #use: ChannelUse
  readonly #picker: ChannelPicker
  readonly #timings: Timings

  constructor(use: ChannelUse, picker: ChannelPicker, timings: Timings) {
    this.#use = use
    this.#picker = picker
    this.#timings = timings
  }

  end(result: AttemptResult): void {
    this.#use.end(result, this.#timings.nowMs())
    this.#picker.onChannelFreed()
  }
}

/**
 * Adds a hint where a candidate was dropped because the funds do not cover it. Where no other candidate could be asked,
 * because the request cannot be translated into their dialects, the missing funds are the reason of the refusal.
 */
function finalRefusal({ skipped }: Hold, refusal: Refusal, wasUnasked = false): Refusal {
  if (skipped === undefined) return refusal
  const why = hintOf(skipped.code === 'budget_too_low' ? 'call_fallback_budget' : 'call_fallback_balance')
  const hint = joined(why, skipped.extras.hint)
  if (wasUnasked) return new Refusal(skipped.code, refusal.message, { hint })
  const { hint: before } = refusal.extras
  const hints = before === undefined ? hint : joined(before, hint)
  return new Refusal(refusal.code, refusal.message, { ...refusal.extras, hint: hints })
}

const joined = (first: Hint, second: Hint | undefined): Hint =>
  second === undefined ? first : hintOf('call_and', { first, second })

/**
 * A failed attempt is not billed. A stopped one is billed, unless the upstream did no work, or the gateway itself ends the
 * call: nothing was passed on, and the caller gets an error.
 */
function discardMeter(exchange: Exchange, failed: AttemptFailed | undefined): void {
  const unbilled = { ...exchange.attempt, meter: newMeter() }
  const { outcome } = exchange.lifetime.stop.reason ?? {}
  const isEndedHere = (outcome === 'drained' || outcome === 'too_long') && !runsTools(exchange)
  if (failed?.didNoWork || isEndedHere) exchange.attempt = unbilled
  exchange.lifetime.stop.throwIfStopped()
  exchange.attempt = unbilled
}

/** The result of a failed attempt for the health of its channel: neutral where the gateway ended or never sent it. */
function resultOf(
  { attempt: { meter }, lifetime: { stop } }: Exchange,
  failed: AttemptFailed | undefined,
): AttemptResult {
  const isNeutral = failed === undefined || (failed.verdict === 'caller_at_fault' && !meter.forwarded)
  const tokens = meter.forwarded ? {} : { tokens: 0 }
  if (isNeutral || stop.reason !== undefined) return { verdict: 'left', ...tokens }
  const { verdict, refusal, overloaded } = failed
  return { verdict, retryAfterMs: refusal.extras.retryAfterMs, isOverloaded: overloaded, ...tokens }
}
