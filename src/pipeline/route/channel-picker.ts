// Where the next attempt goes: by what routing chooses, when there is a place, and within what may be tried again.
//
// An attempt that failed is followed by one on another channel, at once. When there is no other, the same may be tried
// again after a pause, if it has refused the call or never heard of it. Only so many calls may be tried again at a
// time: a provider that is down must not get three times its load.

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

type Try = Extract<Choice, { kind: 'try' }>

/** It counts on its channel from the moment it was chosen: whoever chooses next must see it there. */
export interface Picked {
  readonly way: Way
  readonly seat: ChannelSeat
  /** Begun when it was chosen: between the two no other call may take the same place. */
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

  /** A call is to be forwarded. */
  begin(route: Route, exchange: Exchange): void {
    const { retries, nowMs } = this.#parts
    exchange.retry = retries.begin(route.asked, nowMs(), route.permit.caller.accountId)
    exchange.conversation = conversationOf(route, exchange)
  }

  /** What would be chosen, and from what; nothing is begun. */
  explain(route: Route, exchange: Exchange): ExplainedPick {
    const { affinity, nowMs: now, chance } = this.#parts
    const nowMs = now()
    const { options, policy } = route
    const { accountId } = route.permit.caller
    const conversation = conversationOf(route, exchange)?.name
    const kept = conversation === undefined ? undefined : affinity.look(conversation, nowMs)
    const [keptOn, keptModel, tokens] = [kept?.channelId, kept?.model, this.tokensOf(exchange)]
    const waitMs = bounds.waitingMsMax
    const choosing = { options, policy, tried: [], keptOn, keptModel, accountId, tokens, waitMs, nowMs, chance }
    return { conversation, keptOn, choice: choose(choosing), seats: explainSeats(choosing) }
  }

  /** Undefined when enough was tried. */
  async next(route: Route, exchange: Exchange): Promise<Next> {
    const { attemptsMax, nowMs, lines } = this.#parts
    const { attempts, retry, stop } = exchange
    if (attempts.length >= attemptsMax) return undefined
    if (attempts.length > 0 && !retry!.mayRetry(nowMs())) return undefined
    let untilMs = nowMs() + bounds.waitingMsMax
    for (let again = false; ; ) {
      const leftMs = Math.max(0, untilMs - nowMs())
      // Whoever comes later stands behind.
      const isBehind = !again && attempts.length === 0 && lines.isWaitedIn(route.asked)
      const choice = isBehind ? inLine : this.#choose(route, exchange, { tried: attempts, waitMs: leftMs })
      if (choice.kind === 'try') return this.#take(route, exchange, choice)
      if (choice.kind === 'none') {
        if (again) lines.serve(route.asked)
        return attempts.length === 0 ? noChannel(route, choice.retryAfterMs) : await this.#sameAgain(route, exchange)
      }
      if (choice.forMs !== undefined) {
        await stop.during(this.#parts.pause(choice.forMs))
        untilMs = 0 // ready by now, or tried all the same
        continue
      }
      const { accountId } = route.permit.caller
      const waited = await lines.join(route.asked, accountId, { stop, withinMs: leftMs, again })
      if (waited === 'full') return noChannel(route, 1_000)
      again = true
    }
  }

  #choose({ options, policy, permit }: Route, exchange: Exchange, { tried, waitMs }: Trying): Choice {
    const { affinity, nowMs: now, chance } = this.#parts
    const { conversation } = exchange
    const { accountId } = permit.caller
    const nowMs = now()
    const kept = conversation && affinity.recall(conversation.name, nowMs)
    const [keptOn, keptModel, tokens] = [kept?.channelId, kept?.model, this.tokensOf(exchange)]
    const choosing = { options, policy, tried, keptOn, keptModel, accountId, tokens, waitMs, nowMs, chance }
    const choice = choose(choosing)
    if (choice.kind === 'try') exchange.chosen ??= chosenFrom(choosing, choice, conversation !== undefined)
    return choice
  }

  #take({ ways, options, permit }: Route, exchange: Exchange, { option, seat }: Try): Picked {
    const sinceMs = this.#parts.nowMs()
    const asking = { accountId: permit.caller.accountId, model: option.name }
    const turn = seat.health.begin(this.tokensOf(exchange), sinceMs, asking)
    return { way: ways[options.indexOf(option)]!, seat: seat as ChannelSeat, turn, sinceMs }
  }

  /** There is no other channel left: one of those that failed, after a while. */
  async #sameAgain(route: Route, exchange: Exchange): Promise<Next> {
    const { pause, chance } = this.#parts
    const { attempts, stop } = exchange
    const last = attempts.at(-1)!
    if (!mayPass(last)) return undefined
    const waitMs = Math.max(backoffMs(attempts.length, chance()), last.retryAfterMs ?? 0)
    if (waitMs > bounds.retryPauseMsMax) return undefined
    await stop.during(pause(waitMs))
    const useless = attempts.filter(tried => !mayPass(tried))
    const choice = this.#choose(route, exchange, { tried: useless, waitMs: 0 })
    return choice.kind === 'try' ? this.#take(route, exchange, choice) : undefined
  }

  /** It has answered, so its conversation stays there. */
  answered({ conversation }: Exchange, { seat, way }: Picked): void {
    if (conversation === undefined) return
    const { affinity, nowMs } = this.#parts
    const kept = { channelId: seat.id, model: way.option.name }
    affinity.keep(conversation.name, kept, { ttlMs: conversation.cacheMs, nowMs: nowMs() })
  }

  /** A place may be free. */
  freed(): void {
    this.#parts.lines.serve()
  }

  /** What the call is taken to use until that is known. */
  tokensOf({ call }: Exchange): number {
    return call === undefined ? 0 : tokensOf(call)
  }

  /** The call is over. */
  over({ turn, retry, ending, usedTokens }: Exchange): void {
    turn?.end({ verdict: ending === undefined ? 'left' : verdictOf(ending), tokens: usedTokens })
    retry?.end()
  }
}

/** Only where there is more than one channel to keep to. */
function conversationOf(route: Route, { call, protocol }: Exchange): Exchange['conversation'] {
  const isOneOfMany = route.ways.length > 1 || route.seats.length > 1
  if (!isOneOfMany || call === undefined || protocol.begins === undefined) return undefined
  const name = conversationName(route.permit.caller.accountId, call.model, protocol.begins(call.json))
  return { name, cacheMs: protocol.cacheMs?.(call.json) }
}

export interface ExplainedPick {
  /** By what it is remembered; undefined where nothing is. */
  readonly conversation: string | undefined
  readonly keptOn: string | undefined
  readonly choice: Choice
  readonly seats: readonly ExplainedSeat[]
}

interface Trying {
  readonly tried: readonly Tried[]
  /** How long the call may wait. */
  readonly waitMs: number
}

const inLine: Choice = { kind: 'wait' }

/** What may be otherwise a moment later, and costs nothing twice. */
const mayPass = ({ verdict, again }: Attempt): boolean =>
  again === true && (verdict === 'broken' || verdict === 'rate_limited')

const noChannel = ({ asked }: Route, retryAfterMs: number): { readonly refusal: Refusal } => ({
  refusal: new Refusal('no_channel', asked, { retryAfterMs }),
})

/** What the end of an opened answer says of its channel. */
function verdictOf({ outcome, error }: Ending): Verdict | 'left' {
  if (outcome === 'completed') return 'answered'
  // A caller can provoke an answer that is too large; but one that stalls says something of its channel.
  const isStalled = outcome === 'over_bound' && error === 'upstream_too_slow'
  return outcome === 'upstream_failed' || isStalled ? 'broken' : 'left'
}
