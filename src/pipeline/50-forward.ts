// Hold → the upstream's answer, opened: channel after channel until one gives first content or a whole plain
// answer. Until then an attempt may be replaced; afterwards nothing is tried again.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import { releaseBody } from '../protocols/call.ts'
import type { Verdict } from '../routing/attempts.ts'
import { nextChannel } from '../routing/attempts.ts'
import type { AttemptParts } from './attempt.ts'
import { attempt } from './attempt.ts'
import type { Exchange, Hold } from './exchange.ts'
import { freshMeter } from './meter.ts'
import type { Opened } from './opening.ts'
import { AttemptFailed } from './opening.ts'
import { releaseSaid } from './translation.ts'

export interface ForwardParts extends AttemptParts {
  /** Sees every call before it goes upstream, while its words are there. */
  onForward(exchange: Exchange): void
  onAttemptFailed(channelId: string, detail: string): void
}

export type Forward = (hold: Hold, exchange: Exchange) => Promise<Opened>

export function buildForward(parts: ForwardParts): Forward {
  return async function forward(hold, exchange) {
    const { timings, attempts } = exchange
    parts.onForward(exchange)
    let last: AttemptFailed | undefined
    for (;;) {
      exchange.stop.throwIfStopped() // while nothing has gone upstream there is nothing to pay for
      const channel = nextChannel(hold.route.channels, attempts, bounds.attemptsPerCallMax)
      if (channel === undefined) throw last?.refusal ?? new Refusal('no_channel', hold.route.provider.id)
      const sinceMs = timings.nowMs()
      const note = (verdict: Verdict): void => {
        attempts.push({ channelId: channel.id, verdict, ms: timings.nowMs() - sinceMs })
      }
      try {
        const opened = await attempt(parts, { hold, exchange, channel })
        note('answered')
        exchange.firstMs = timings.nowMs()
        releaseBody(hold.call)
        releaseSaid(exchange)
        return opened
      } catch (fault) {
        note(fault instanceof AttemptFailed ? fault.verdict : 'broken')
        exchange.stop.throwIfStopped() // cut and not failed: what it gave still counts
        exchange.meter = freshMeter()
        if (!(fault instanceof AttemptFailed)) throw fault
        parts.onAttemptFailed(channel.id, fault.message)
        last = fault
      }
    }
  }
}
