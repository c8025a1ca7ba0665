// Where the next attempt goes: by what routing chooses, when there is a place, and within what may be tried again.
//
// An attempt that failed is followed by one on another channel, at once. When there is no other, the same may be tried
// again after a pause, unless that would be of no use. Only so many calls may be tried again at a time: a provider that
// is down must not get three times its load.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import { estimateTokens } from '../billing/price.ts'
import type { WaitingLines } from '../limits/waiting-line.ts'
import type { Affinity } from '../routing/affinity.ts'
import type { Tried, Verdict } from '../routing/attempts.ts'
import { backoffMs } from '../routing/backoff.ts'
import type { Choice, ExplainedSeat } from '../routing/choose.ts'
import { choose, explainSeats } from '../routing/choose.ts'
import type { RetryBudget } from '../routing/retry-budget.ts'
import { conversationName } from './conversation-name.ts'
import type { Exchange, Route, Way } from './exchange.ts'
import { chosenFrom } from './explain/why.ts'
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
    exchange.conversation = conversationOf(route, exchange)
  }

  /** What would be chosen, and from what; nothing is begun. */
  explain(route: Route, exchange: Exchange): ExplainedPick {
    const { affinity, nowMs: now, chance } = this.#parts
    const nowMs = now()
    const { options, policy } = route
    const conversation = conversationOf(route, exchange)?.name
    const keptOn = conversation === undefined ? undefined : affinity.recall(conversation, nowMs)
    const choosing = { options, policy, tried: [], keptOn, tokens: this.tokensOf(exchange), nowMs, chance }
    return { conversation, keptOn, choice: choose(choosing), seats: explainSeats(choosing) }
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
    const keptOn = conversation && affinity.recall(conversation.name, nowMs)
    const choosing = { options, policy, tried, keptOn, tokens: this.tokensOf(exchange), nowMs, chance }
    const choice = choose(choosing)
    if (choice.kind === 'try') exchange.chosen ??= chosenFrom(choosing, choice, conversation !== undefined)
    return choice
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
    if (!PASSING.has(last.verdict)) return undefined
    const waitMs = Math.max(backoffMs(attempts.length, chance()), last.retryAfterMs ?? 0)
    if (waitMs > bounds.retryPauseMsMax) return undefined
    await stop.during(pause(waitMs))
    const useless = attempts.filter(({ verdict }) => !PASSING.has(verdict))
    const choice = this.#chooseNow(route, exchange, { tried: useless, nowMs: nowMs(), chance, affinity })
    return choice.kind === 'try' ? picked(route, choice) : undefined
  }

  /** It has answered, so its conversation stays there. */
  answered({ conversation }: Exchange, { seat }: Picked): void {
    if (conversation === undefined) return
    this.#parts.affinity.keep(conversation.name, seat.id, { ttlMs: conversation.cacheMs, nowMs: this.#parts.nowMs() })
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

interface Now {
  readonly tried: readonly Tried[]
  readonly nowMs: number
  readonly affinity: Affinity
  chance(): number
}

const TYPICAL_OUTPUT = 1_024

/** What may be otherwise a moment later. One that was too slow has had its time. */
const PASSING: ReadonlySet<Verdict> = new Set(['broken', 'rate_limited'])

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
