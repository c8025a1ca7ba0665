// Hold → the upstream's answer, opened: channel after channel until one gives first content or a whole plain answer.
// Until then an attempt may be replaced; afterwards nothing is tried again.

import { Refusal } from '../base/errors.ts'
import { releaseBody } from '../protocols/call.ts'
import type { Verdict } from '../routing/attempts.ts'
import type { Fate } from '../routing/health.ts'
import { onWay } from './30-route.ts'
import type { AttemptParts, Heard } from './attempt.ts'
import { attempt } from './attempt.ts'
import type { Attempt, Exchange, Hold } from './exchange.ts'
import { freshMeter } from './meter.ts'
import type { Opened } from './opening.ts'
import { AttemptFailed } from './opening.ts'
import type { Picking, Picked } from './picking.ts'
import { routeNote } from './timings.ts'
import { releaseSaid } from './translation.ts'

export interface ForwardParts extends AttemptParts {
  readonly picking: Picking
  /** Sees every call before it goes upstream, while its words are there. */
  onForward(exchange: Exchange): void
  onAttemptFailed(channelId: string, detail: string): void
}

export type Forward = (hold: Hold, exchange: Exchange) => Promise<Opened>

export function buildForward(parts: ForwardParts): Forward {
  const { picking } = parts

  async function tryOn({ way, seat, turn }: Picked, hold: Hold, exchange: Exchange): Promise<Opened> {
    const { timings, attempts } = exchange
    const used = onHeldWay(hold, way)
    exchange.hold = used
    exchange.route = used.route
    const sinceMs = timings.nowMs()
    const heard: Heard = {}
    const note = (verdict: Verdict, more?: Partial<Attempt>): void => {
      attempts.push({ channelId: seat.id, model: way.option.name, verdict, ms: timings.nowMs() - sinceMs, ...more })
    }
    const end = (fate: Fate): void => {
      turn.end({ ...fate, told: heard.told }, timings.nowMs())
      picking.freed()
    }
    try {
      const opened = await attempt(parts, { hold: used, exchange, channel: seat.channel, heard })
      note('answered')
      exchange.firstMs = timings.nowMs()
      turn.answered(exchange.firstMs - sinceMs, exchange.firstMs)
      exchange.turn = { end } // when the call is over, for then it is known what it used
      return opened
    } catch (fault) {
      const failed = fault instanceof AttemptFailed ? fault : undefined
      const verdict = failed?.verdict ?? 'broken'
      const retryAfterMs = failed?.refusal.extras.retryAfterMs
      note(verdict, { retryAfterMs, again: failed?.wasNothing ?? false })
      const isCut = exchange.stop.reason !== undefined
      end({ verdict: isCut ? 'left' : verdict, retryAfterMs, overloaded: failed?.overloaded ?? false })
      throw fault
    }
  }

  return async function forward(hold, exchange) {
    const { timings } = exchange
    parts.onForward(exchange)
    picking.begin(hold.route, exchange)
    for (let last: AttemptFailed | undefined; ; ) {
      exchange.stop.throwIfStopped() // while nothing has gone upstream there is nothing to pay for
      const picked = await picking.next(hold.route, exchange)
      if (picked === undefined) throw last?.refusal ?? new Refusal('no_channel', hold.route.asked)
      if ('refusal' in picked) throw last?.refusal ?? picked.refusal
      try {
        const opened = await tryOn(picked, hold, exchange)
        if (picked.way !== hold.route.ways[0]) timings.rename('Route', routeNote(picked.way))
        picking.answered(exchange, picked)
        releaseBody(hold.call)
        releaseSaid(exchange)
        return opened
      } catch (fault) {
        exchange.stop.throwIfStopped() // cut and not failed: what it gave still counts
        exchange.meter = freshMeter()
        if (!(fault instanceof AttemptFailed)) throw fault
        parts.onAttemptFailed(picked.seat.id, fault.message)
        if (fault.verdict === 'caller_at_fault') throw fault.refusal
        last = fault
      }
    }
  }
}

/** The hold as it is on one of its ways. */
export function onHeldWay(hold: Hold, way: Picked['way']): Hold {
  if (way === hold.route.ways[0]) return hold
  const at = hold.route.ways.indexOf(way)
  return { ...hold, route: onWay(hold.route, way), size: hold.sizes[at]! }
}
