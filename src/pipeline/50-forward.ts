// Hold → the upstream's answer, opened: channel after channel until one gives first content or a whole plain answer.
// Until then an attempt may be replaced; afterwards nothing is tried again.

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
  /** Sees every call before it goes upstream, while its words are there. */
  onForward(exchange: Exchange): void
  onAttemptFailed(channelId: string, detail: string): void
}

export type Forward = (hold: Hold, exchange: Exchange) => Promise<Opened>

export function buildForward(parts: ForwardParts): Forward {
  const { picking } = parts

  async function tryOn({ way, seat, turn, sinceMs }: Picked, hold: Hold, exchange: Exchange): Promise<Opened> {
    const { timings, attempts } = exchange
    const used = onHeldWay(hold, way)
    exchange.hold = used
    exchange.route = used.route
    const heard: Heard = {}
    const note = (verdict: Verdict, more?: Partial<Attempt>): void => {
      attempts.push({ channelId: seat.id, model: way.option.name, verdict, ms: timings.nowMs() - sinceMs, ...more })
    }
    const end = (fate: Fate): void => {
      turn.end(fate, timings.nowMs())
      picking.freed()
    }
    try {
      const opened = await attempt(parts, { hold: used, exchange, channel: seat.channel, heard })
      note('answered')
      exchange.firstMs = timings.nowMs()
      turn.answered({ firstMs: exchange.firstMs - sinceMs, told: heard.told }, exchange.firstMs)
      exchange.turn = { end } // when the call is over, for then it is known what it used
      return opened
    } catch (fault) {
      const failed = fault instanceof AttemptFailed ? fault : undefined
      const fate = fateOf(exchange, failed)
      note(failed?.verdict ?? 'broken', { retryAfterMs: fate.retryAfterMs, again: failed?.wasNothing ?? false })
      end({ ...fate, told: heard.told })
      throw fault
    }
  }

  return async function forward(hold, exchange) {
    parts.onForward(exchange)
    picking.begin(hold.route, exchange)
    let { route } = hold
    for (let last: AttemptFailed | undefined; ; ) {
      exchange.stop.throwIfStopped() // while nothing has gone upstream there is nothing to pay for
      const picked = await picking.next(route, exchange)
      if (picked === undefined || 'refusal' in picked) {
        throw nobodyAnswered(hold, (last ?? picked)?.refusal ?? new Refusal('no_channel', hold.route.asked))
      }
      try {
        const opened = await tryOn(picked, hold, exchange)
        if (picked.way !== hold.route.ways[0]) exchange.timings.rename('Route', routeNote(picked.way))
        picking.answered(exchange, picked)
        releaseBody(hold.call)
        releaseSaid(exchange)
        return opened
      } catch (fault) {
        const failed = fault instanceof AttemptFailed ? fault : undefined
        const isSent = exchange.meter.forwarded
        const isCut = failed !== undefined && outcomeOf(failed.refusal) === 'over_bound' && runsTools(exchange)
        if (!isCut) forget(exchange, failed)
        if (failed === undefined) throw fault
        parts.onAttemptFailed(picked.seat.id, failed.message)
        if (isCut) throw failed.refusal // what its tools were told would be told them again
        const isFinal = failed.verdict === 'caller_at_fault'
        if (isFinal && isSent) throw failed.refusal
        if (!isFinal || last === undefined) last = failed
        // What cannot be put into the dialect of one way may well be what another speaks.
        const others = isFinal ? withoutWay(route, picked.way) : route
        if (others === undefined) throw nobodyAnswered(hold, last.refusal, last.verdict === 'caller_at_fault')
        route = others
      }
    }
  }
}

/**
 * A way that money would have opened is named. Where the others could not even be asked, because the request cannot be
 * put into their dialects, money is the only thing that was missing.
 */
function nobodyAnswered({ skipped }: Hold, refusal: Refusal, wasUnasked = false): Refusal {
  if (skipped === undefined) return refusal
  const of = skipped.code === 'budget_too_low' ? 'a budget' : 'the balance'
  const hint = `A fallback was skipped because ${of} does not cover it. ${skipped.extras.hint ?? ''}`.trim()
  if (wasUnasked) return new Refusal(skipped.code, refusal.message, { hint })
  const { hint: before } = refusal.extras
  const hints = before === undefined ? hint : `${before} ${hint}`
  return new Refusal(refusal.code, refusal.message, { ...refusal.extras, hint: hints })
}

/** What a failed attempt gave counts for nothing. Of one that was cut it still counts, unless it was refused. */
function forget(exchange: Exchange, failed: AttemptFailed | undefined): void {
  if (failed?.wasNothing) exchange.meter = freshMeter()
  exchange.stop.throwIfStopped()
  exchange.meter = freshMeter()
}

/** What the end of an attempt without an answer says of its channel: nothing, where it was cut or never sent by us. */
function fateOf({ stop, meter }: Exchange, failed: AttemptFailed | undefined): Fate {
  const isOurs = failed === undefined || (failed.verdict === 'caller_at_fault' && !meter.forwarded)
  const tokens = meter.forwarded ? {} : { tokens: 0 }
  if (isOurs || stop.reason !== undefined) return { verdict: 'left', ...tokens }
  const { verdict, refusal, overloaded } = failed
  return { verdict, retryAfterMs: refusal.extras.retryAfterMs, overloaded, ...tokens }
}

/** The hold as it is on one of its ways. */
export function onHeldWay(hold: Hold, way: Picked['way']): Hold {
  if (way === hold.route.ways[0]) return hold
  const size = hold.sizes[hold.route.ways.indexOf(way)]!
  const cap = hold.cap === undefined ? {} : { cap: Math.min(hold.cap, size.outputTokensMax) }
  return { ...hold, ...cap, route: onWay(hold.route, way), size }
}
