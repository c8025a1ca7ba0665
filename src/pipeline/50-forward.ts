// Hold → the upstream's answer, opened: tries channel after channel until one delivers its first content, or a whole
// plain answer. After that nothing is tried again.

import { Refusal } from '../base/errors.ts'
import { releaseBody } from '../protocols/neutral/call.ts'
import type { Verdict } from '../routing/attempts.ts'
import type { Fate } from '../routing/health/health.ts'
import { onWay, withoutWay } from './30-route.ts'
import type { AttemptParts, Heard } from './attempt/attempt.ts'
import { attempt } from './attempt/attempt.ts'
import type { Opened } from './attempt/open-response.ts'
import { AttemptFailed } from './attempt/open-response.ts'
import { releaseSaid } from './attempt/translation.ts'
import type { Attempt, Exchange, Hold } from './exchange.ts'
import { runsTools } from './exchange.ts'
import type { Picked, Picking } from './route/channel-picker.ts'
import { outcomeOf } from './settle/ending.ts'
import { freshMeter } from './settle/usage-meter.ts'
import { routeNote } from './timings.ts'

export interface ForwardParts extends AttemptParts {
  readonly picking: Picking
  /** Called with every call before it goes upstream, while its body is in memory. */
  onForward(exchange: Exchange): void
  onAttemptFailed(channelId: string, detail: string): void
}

export type Forward = (hold: Hold, exchange: Exchange) => Promise<Opened>

export function buildForward(parts: ForwardParts): Forward {
  const { picking } = parts

  async function tryChannel({ way, seat, turn, sinceMs }: Picked, hold: Hold, exchange: Exchange): Promise<Opened> {
    const { timings, attempts } = exchange
    const usedHold = onHeldWay(hold, way)
    exchange.hold = usedHold
    exchange.route = usedHold.route
    const responseLimits: Heard = {}
    const addAttempt = (verdict: Verdict, more?: Partial<Attempt>): void => {
      attempts.push({ channelId: seat.id, model: way.option.name, verdict, ms: timings.nowMs() - sinceMs, ...more })
    }
    const endUse = (result: Fate): void => {
      turn.end(result, timings.nowMs())
      picking.freed()
    }
    try {
      const opened = await attempt(parts, { hold: usedHold, exchange, channel: seat.channel, responseLimits })
      addAttempt('answered')
      exchange.firstMs = timings.nowMs()
      turn.answered({ firstMs: exchange.firstMs - sinceMs, told: responseLimits.told }, exchange.firstMs)
      exchange.turn = { end: endUse } // the end of the call ends the use, because only then its tokens are known
      return opened
    } catch (fault) {
      const failed = fault instanceof AttemptFailed ? fault : undefined
      const result = resultOf(exchange, failed)
      addAttempt(failed?.verdict ?? 'broken', { retryAfterMs: result.retryAfterMs, again: failed?.wasNothing ?? false })
      endUse({ ...result, told: responseLimits.told })
      throw fault
    }
  }

  return async function forward(hold, exchange) {
    parts.onForward(exchange)
    picking.begin(hold.route, exchange)
    let { route } = hold
    for (let last: AttemptFailed | undefined; ; ) {
      exchange.stop.throwIfStopped() // nothing was sent upstream yet, so there is nothing to pay for
      const picked = await picking.next(route, exchange)
      if (picked === undefined || 'refusal' in picked) {
        throw finalRefusal(hold, (last ?? picked)?.refusal ?? new Refusal('no_channel', hold.route.asked))
      }
      try {
        const opened = await tryChannel(picked, hold, exchange)
        if (picked.way !== hold.route.ways[0]) exchange.timings.rename('Route', routeNote(picked.way))
        picking.answered(exchange, picked)
        releaseBody(hold.call)
        releaseSaid(exchange)
        return opened
      } catch (fault) {
        const failed = fault instanceof AttemptFailed ? fault : undefined
        const isSent = exchange.meter.forwarded
        const isCut = failed !== undefined && outcomeOf(failed.refusal) === 'over_bound' && runsTools(exchange)
        if (!isCut) discardMeter(exchange, failed)
        if (failed === undefined) throw fault
        parts.onAttemptFailed(picked.seat.id, failed.message)
        if (isCut) throw failed.refusal // another attempt would run the tools a second time
        const isFinal = failed.verdict === 'caller_at_fault'
        if (isFinal && isSent) throw failed.refusal
        if (!isFinal || last === undefined) last = failed
        // Another candidate may speak the caller's dialect, where nothing must be translated.
        const others = isFinal ? withoutWay(route, picked.way) : route
        if (others === undefined) throw finalRefusal(hold, last.refusal, last.verdict === 'caller_at_fault')
        route = others
      }
    }
  }
}

/**
 * Adds a hint where a candidate was dropped because the funds do not cover it. Where no other candidate could be asked,
 * because the request cannot be translated into their dialects, the missing funds are the reason of the refusal.
 */
function finalRefusal({ skipped }: Hold, refusal: Refusal, wasUnasked = false): Refusal {
  if (skipped === undefined) return refusal
  const source = skipped.code === 'budget_too_low' ? 'a budget' : 'the balance'
  const hint = `A fallback was skipped because ${source} does not cover it. ${skipped.extras.hint ?? ''}`.trim()
  if (wasUnasked) return new Refusal(skipped.code, refusal.message, { hint })
  const { hint: before } = refusal.extras
  const hints = before === undefined ? hint : `${before} ${hint}`
  return new Refusal(refusal.code, refusal.message, { ...refusal.extras, hint: hints })
}

/** A failed attempt is not billed. A stopped one is billed, unless the upstream did no work. */
function discardMeter(exchange: Exchange, failed: AttemptFailed | undefined): void {
  if (failed?.wasNothing) exchange.meter = freshMeter()
  exchange.stop.throwIfStopped()
  exchange.meter = freshMeter()
}

/** The result of a failed attempt for the health of its channel: neutral where the gateway ended or never sent it. */
function resultOf({ stop, meter }: Exchange, failed: AttemptFailed | undefined): Fate {
  const isNeutral = failed === undefined || (failed.verdict === 'caller_at_fault' && !meter.forwarded)
  const tokens = meter.forwarded ? {} : { tokens: 0 }
  if (isNeutral || stop.reason !== undefined) return { verdict: 'left', ...tokens }
  const { verdict, refusal, overloaded } = failed
  return { verdict, retryAfterMs: refusal.extras.retryAfterMs, overloaded, ...tokens }
}

/** The hold with one of its candidates in use. */
export function onHeldWay(hold: Hold, way: Picked['way']): Hold {
  if (way === hold.route.ways[0]) return hold
  const size = hold.sizes[hold.route.ways.indexOf(way)]!
  const cap = hold.cap === undefined ? {} : { cap: Math.min(hold.cap, size.outputTokensMax) }
  return { ...hold, ...cap, route: onWay(hold.route, way), size }
}
