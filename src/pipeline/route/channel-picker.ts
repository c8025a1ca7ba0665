// Picks the candidate and the channel of the next attempt, waits in a queue where all channels are busy, and keeps
// retries within their budget.
//
// After a failed attempt another channel is tried at once. If there is no other, the same channel may be tried again
// after a pause, provided that its upstream did no work for the failed attempt. The retry budget bounds how many calls
// are retried at a time: an upstream that is down must not get three times its load.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { WaitingLines } from '../../limits/wait-queue.ts'
import type { Tried, Verdict } from '../../routing/attempts.ts'
import { backoffMs } from '../../routing/backoff.ts'
import type { Affinity } from '../../routing/choice/affinity.ts'
import type { Choice, ExplainedSeat } from '../../routing/choice/choose.ts'
import { choose, explainSeats } from '../../routing/choice/choose.ts'
import type { Turn } from '../../routing/health/health.ts'
import type { RetryBudget } from '../../routing/retry-budget.ts'
import { tokensOf } from '../20-limit-rate.ts'
import type { Attempt, Ending, Exchange, Route, Way } from '../exchange.ts'
import { conversationName } from './conversation-key.ts'
import { chosenFrom } from './route-reason.ts'
import type { ChannelSeat } from './targets.ts'

type TryChoice = Extract<Choice, { kind: 'try' }>

/** The chosen channel. The call counts on it from now on, so that the next choice sees it. */
export interface Picked {
  readonly way: Way
  readonly seat: ChannelSeat
  /** Begun in the same step as the choice, so that no other call can take the same slot. */
  readonly turn: Turn
  readonly sinceMs: number
}

export interface PickingParts {
  readonly attemptsMax: number
  readonly lines: WaitingLines
  readonly affinity: Affinity
  readonly retries: RetryBudget
  nowMs(): number
  chance(): number
  /** Resolves after so many milliseconds. */
  pause(ms: number): Promise<void>
}

export type Next = Picked | { readonly refusal: Refusal } | undefined

export class Picking {
  readonly #parts: PickingParts

  constructor(parts: PickingParts) {
    this.#parts = parts
  }

  /** Prepares a call that is about to be forwarded. */
  begin(route: Route, exchange: Exchange): void {
    const { retries, nowMs } = this.#parts
    exchange.retry = retries.begin(route.asked, nowMs(), route.permit.caller.accountId)
    exchange.conversation = affinityOf(route, exchange)
  }

  /** What routing would choose, and from what. Nothing is begun. */
  explain(route: Route, exchange: Exchange): ExplainedPick {
    const { affinity, nowMs: now, chance } = this.#parts
    const nowMs = now()
    const { options, policy } = route
    const { accountId } = route.permit.caller
    const conversation = affinityOf(route, exchange)?.name
    const kept = conversation === undefined ? undefined : affinity.look(conversation, nowMs)
    const [keptOn, keptModel, tokens] = [kept?.channelId, kept?.model, this.tokensOf(exchange)]
    const waitMs = bounds.waitingMsMax
    const choosing = { options, policy, tried: [], keptOn, keptModel, accountId, tokens, waitMs, nowMs, chance }
    return { conversation, keptOn, choice: choose(choosing), seats: explainSeats(choosing) }
  }

  /** Returns undefined if no further attempt is allowed. */
  async next(route: Route, exchange: Exchange): Promise<Next> {
    const { attemptsMax, nowMs, lines } = this.#parts
    const { attempts, retry, stop } = exchange
    if (attempts.length >= attemptsMax) return undefined
    if (attempts.length > 0 && !retry!.mayRetry(nowMs())) return undefined
    let untilMs = nowMs() + bounds.waitingMsMax
    for (let again = false; ; ) {
      const leftMs = Math.max(0, untilMs - nowMs())
      // A new call stands behind those that already wait.
      const mustQueue = !again && attempts.length === 0 && lines.isWaitedIn(route.asked)
      const choice = mustQueue ? waitInQueue : this.#choose(route, exchange, { tried: attempts, waitMs: leftMs })
      if (choice.kind === 'try') return this.#take(route, exchange, choice)
      if (choice.kind === 'none') {
        if (again) lines.serve(route.asked)
        return attempts.length === 0 ? noChannel(route, choice.retryAfterMs) : await this.#retrySame(route, exchange)
      }
      if (choice.forMs !== undefined) {
        await stop.during(this.#parts.pause(choice.forMs))
        untilMs = 0 // the channel is ready by now, or is tried anyway
        continue
      }
      const { accountId } = route.permit.caller
      const waited = await lines.join(route.asked, accountId, { stop, withinMs: leftMs, again })
      if (waited === 'full') return noChannel(route, 1_000)
      again = true
    }
  }

  #choose({ options, policy, permit }: Route, exchange: Exchange, { tried, waitMs }: ChoiceLimits): Choice {
    const { affinity, nowMs: now, chance } = this.#parts
    const { conversation: affinityKey } = exchange
    const { accountId } = permit.caller
    const nowMs = now()
    const kept = affinityKey && affinity.recall(affinityKey.name, nowMs)
    const [keptOn, keptModel, tokens] = [kept?.channelId, kept?.model, this.tokensOf(exchange)]
    const choosing = { options, policy, tried, keptOn, keptModel, accountId, tokens, waitMs, nowMs, chance }
    const choice = choose(choosing)
    if (choice.kind === 'try') exchange.chosen ??= chosenFrom(choosing, choice, affinityKey !== undefined)
    return choice
  }

  #take({ ways, options, permit }: Route, exchange: Exchange, { option, seat }: TryChoice): Picked {
    const sinceMs = this.#parts.nowMs()
    const asking = { accountId: permit.caller.accountId, model: option.name }
    const channelUse = seat.health.begin(this.tokensOf(exchange), sinceMs, asking)
    return { way: ways[options.indexOf(option)]!, seat: seat as ChannelSeat, turn: channelUse, sinceMs }
  }

  /** No other channel is left: picks one of those that failed, after a pause. */
  async #retrySame(route: Route, exchange: Exchange): Promise<Next> {
    const { pause, chance } = this.#parts
    const { attempts, stop } = exchange
    const last = attempts.at(-1)!
    if (!isTransient(last)) return undefined
    const waitMs = Math.max(backoffMs(attempts.length, chance()), last.retryAfterMs ?? 0)
    if (waitMs > bounds.retryPauseMsMax) return undefined
    await stop.during(pause(waitMs))
    const permanent = attempts.filter(tried => !isTransient(tried))
    const choice = this.#choose(route, exchange, { tried: permanent, waitMs: 0 })
    return choice.kind === 'try' ? this.#take(route, exchange, choice) : undefined
  }

  /** The channel has answered, so that later turns of the conversation prefer it. */
  answered({ conversation: affinityKey }: Exchange, { seat, way }: Picked): void {
    if (affinityKey === undefined) return
    const { affinity, nowMs } = this.#parts
    const kept = { channelId: seat.id, model: way.option.name }
    affinity.keep(affinityKey.name, kept, { ttlMs: affinityKey.cacheMs, nowMs: nowMs() })
  }

  /** Wakes waiting calls, because a channel may have room. */
  freed(): void {
    this.#parts.lines.serve()
  }

  /** The tokens that the call is expected to use. */
  tokensOf({ call }: Exchange): number {
    return call === undefined ? 0 : tokensOf(call)
  }

  /** Reports the end of the call to its channel and to the retry budget. */
  over({ turn, retry, ending, usedTokens }: Exchange): void {
    turn?.end({ verdict: ending === undefined ? 'left' : verdictOf(ending), tokens: usedTokens })
    retry?.end()
  }
}

/** Undefined where there is only one channel, so that no preference is needed. */
function affinityOf(route: Route, { call, protocol }: Exchange): Exchange['conversation'] {
  const hasSeveralChannels = route.ways.length > 1 || route.seats.length > 1
  if (!hasSeveralChannels || call === undefined || protocol.begins === undefined) return undefined
  const name = conversationName(route.permit.caller.accountId, call.model, protocol.begins(call.json))
  return { name, cacheMs: protocol.cacheMs?.(call.json) }
}

export interface ExplainedPick {
  /** The key of the conversation; undefined where affinity does not apply. */
  readonly conversation: string | undefined
  readonly keptOn: string | undefined
  readonly choice: Choice
  readonly seats: readonly ExplainedSeat[]
}

interface ChoiceLimits {
  readonly tried: readonly Tried[]
  /** How long the call may wait for a channel. */
  readonly waitMs: number
}

const waitInQueue: Choice = { kind: 'wait' }

/** Failures that may pass in a moment and for which the upstream did no work. */
const isTransient = ({ verdict, again }: Attempt): boolean =>
  again === true && (verdict === 'broken' || verdict === 'rate_limited')

const noChannel = ({ asked }: Route, retryAfterMs: number): { readonly refusal: Refusal } => ({
  refusal: new Refusal('no_channel', asked, { retryAfterMs }),
})

/** What the end of an opened answer means for the health of its channel. */
function verdictOf({ outcome, error }: Ending): Verdict | 'left' {
  if (outcome === 'completed') return 'answered'
  // A caller can provoke an answer that is too large. But a stalled stream is the channel's fault.
  const isStalled = outcome === 'over_bound' && error === 'upstream_too_slow'
  return outcome === 'upstream_failed' || isStalled ? 'broken' : 'left'
}
