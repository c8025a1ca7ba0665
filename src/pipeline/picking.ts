// Where the next attempt goes: by what routing chooses, when there is a place, and within what may be tried again.
//
// An attempt that failed is followed by one on another channel, at once. When there is no other, the same may be tried
// again after a pause, if it has refused the call or never heard of it. Only so many calls may be tried again at a
// time: a provider that is down must not get three times its load.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import { estimateTokens } from '../billing/price.ts'
import type { WaitingLines } from '../limits/waiting-line.ts'
import type { Affinity } from '../routing/affinity.ts'
import type { Tried, Verdict } from '../routing/attempts.ts'
import { backoffMs } from '../routing/backoff.ts'
import type { Choice } from '../routing/choose.ts'
import { choose } from '../routing/choose.ts'
import type { RetryBudget } from '../routing/retry-budget.ts'
import { conversationName } from './conversation-name.ts'
import type { Attempt, Exchange, Route, Way } from './exchange.ts'
import type { Berth } from './lanes.ts'

export interface Picked {
  readonly way: Way
  readonly seat: Berth
  readonly why: Extract<Choice, { kind: 'try' }>['why']
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
    exchange.retry = retries.begin(route.asked, nowMs())
    const { call, protocol } = exchange
    const isOneOfMany = route.ways.length > 1 || route.seats.length > 1
    if (!isOneOfMany || call === undefined || protocol.begins === undefined) return
    const name = conversationName(route.permit.caller.accountId, call.model, protocol.begins(call.json))
    exchange.conversation = { name, cacheMs: protocol.cacheMs?.(call.json) }
  }

  /** Undefined when enough was tried. */
  async next(route: Route, exchange: Exchange): Promise<Next> {
    const { attempts, retry } = exchange
    if (attempts.length >= this.#parts.attemptsMax) return undefined
    if (attempts.length > 0 && !retry!.mayRetry(this.#parts.nowMs())) return undefined
    const choice = this.#choose(route, exchange, attempts)
    if (choice.kind === 'try') return picked(route, choice)
    if (choice.kind === 'wait') return await this.#nextInLine(route, exchange)
    if (attempts.length === 0) return noChannel(route, choice.retryAfterMs)
    return await this.#sameAgain(route, exchange)
  }

  #choose(route: Route, exchange: Exchange, tried: readonly Tried[]): Choice {
    const { lines, affinity, nowMs, chance } = this.#parts
    // Whoever comes later stands behind.
    if (exchange.attempts.length === 0 && lines.isWaitedIn(route.asked)) return { kind: 'wait' }
    return this.#chooseNow(route, exchange, { tried, nowMs: nowMs(), chance, affinity })
  }

  #chooseNow({ options, policy }: Route, exchange: Exchange, { tried, nowMs, chance, affinity }: Now): Choice {
    const { conversation } = exchange
    const kept = conversation && affinity.recall(conversation.name, nowMs)
    const keeping = { keptOn: kept?.channelId, keptModel: kept?.model }
    return choose({ options, policy, tried, ...keeping, tokens: this.tokensOf(exchange), nowMs, chance })
  }

  async #nextInLine(route: Route, exchange: Exchange): Promise<Next> {
    const { lines, nowMs, chance, affinity } = this.#parts
    const { accountId } = route.permit.caller
    const untilMs = nowMs() + bounds.waitingMsMax
    for (let again = false; ; again = true) {
      const withinMs = untilMs - nowMs()
      const waited = await lines.join(route.asked, accountId, { stop: exchange.stop, withinMs, again })
      if (waited !== 'turn') return noChannel(route, 1_000)
      const choice = this.#chooseNow(route, exchange, { tried: exchange.attempts, nowMs: nowMs(), chance, affinity })
      if (choice.kind === 'try') return picked(route, choice)
      if (choice.kind === 'none') {
        lines.serve(route.asked)
        return noChannel(route, choice.retryAfterMs)
      }
    }
  }

  /** There is no other channel left: one of those that failed, after a while. */
  async #sameAgain(route: Route, exchange: Exchange): Promise<Next> {
    const { pause, chance, nowMs, affinity } = this.#parts
    const { attempts, stop } = exchange
    const last = attempts.at(-1)!
    if (!mayPass(last)) return undefined
    const waitMs = Math.max(backoffMs(attempts.length, chance()), last.retryAfterMs ?? 0)
    if (waitMs > bounds.retryPauseMsMax) return undefined
    await stop.during(pause(waitMs))
    const useless = attempts.filter(tried => !mayPass(tried))
    const choice = this.#chooseNow(route, exchange, { tried: useless, nowMs: nowMs(), chance, affinity })
    return choice.kind === 'try' ? picked(route, choice) : undefined
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
    const { inputBytes = 0, outputTokensMax = TYPICAL_OUTPUT } = call ?? {}
    return estimateTokens(inputBytes) + Math.min(outputTokensMax, TYPICAL_OUTPUT)
  }

  /** The call is over. */
  over({ turn, retry, ending }: Exchange): void {
    turn?.end({ verdict: ending === undefined ? 'left' : verdictOf(ending.outcome) })
    retry?.end()
  }
}

interface Now {
  readonly tried: readonly Tried[]
  readonly nowMs: number
  readonly affinity: Affinity
  chance(): number
}

const TYPICAL_OUTPUT = 1_024

/** What may be otherwise a moment later, and costs nothing twice. */
const mayPass = ({ verdict, again }: Attempt): boolean =>
  again === true && (verdict === 'broken' || verdict === 'rate_limited')

const picked = ({ ways, options }: Route, { option, seat, why }: Extract<Choice, { kind: 'try' }>): Picked => ({
  way: ways[options.indexOf(option)]!,
  seat: seat as Berth,
  why,
})

const noChannel = ({ asked }: Route, retryAfterMs: number): { readonly refusal: Refusal } => ({
  refusal: new Refusal('no_channel', asked, { retryAfterMs }),
})

/** What the end of an opened answer says of its channel. */
function verdictOf(outcome: string): Verdict | 'left' {
  if (outcome === 'completed') return 'answered'
  return outcome === 'upstream_failed' ? 'broken' : 'left'
}
