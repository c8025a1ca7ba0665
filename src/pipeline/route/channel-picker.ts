// Picks the candidate and the channel of the next attempt, waits in a queue where all channels are busy, and keeps
// retries within their budget.
//
// After a failed attempt another channel is tried at once. If there is no other, the same channel may be tried again
// after a pause, provided that its upstream did no work for the failed attempt. The retry budget bounds how many calls
// are retried at a time: an upstream that is down must not get three times its load.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Stop } from '../../base/stop.ts'
import type { WaitQueues } from '../../limits/wait-queue.ts'
import type { AttemptVerdict, TriedChannel } from '../../routing/attempts.ts'
import { backoffMs } from '../../routing/backoff.ts'
import type { Affinity } from '../../routing/choice/affinity.ts'
import type { ChannelChoice, ExplainedChannel } from '../../routing/choice/channel-choice.ts'
import { chooseChannel, explainChannels } from '../../routing/choice/channel-choice.ts'
import type { TargetOption } from '../../routing/choice/target-option.ts'
import type { ChannelUse } from '../../routing/health/health.ts'
import type { RetryBudget } from '../../routing/retry-budget.ts'
import { expectedTokens } from '../20-limit-rate.ts'
import type { CallEnding, Candidate, Exchange, FinishedAttempt, Route, RoutingState } from '../exchange.ts'
import { conversationKeyOf } from './conversation-key.ts'
import { explainChoice } from './route-reason.ts'
import type { TargetChannel } from './targets.ts'

type TryChoice = Extract<ChannelChoice, { kind: 'try' }>

/** What picking reads and notes of a call. A task has no more than this. */
export interface PickingCall extends Pick<Exchange, 'call' | 'protocol' | 'attempts' | 'routing'> {
  readonly lifetime: { readonly stop: Stop<object> }
}

/** The chosen channel. The call counts on it from now on, so that the next choice sees it. */
export interface PickedChannel {
  readonly candidate: Candidate
  readonly targetChannel: TargetChannel
  /** Begun in the same step as the choice, so that no other call can take the same slot. */
  readonly channelUse: ChannelUse
  readonly sinceMs: number
}

export interface ChannelPickerParts {
  readonly attemptsMax: number
  readonly waitQueues: WaitQueues
  readonly affinity: Affinity
  readonly retries: RetryBudget
  nowMs(): number
  chance(): number
  /** Resolves after so many milliseconds. */
  pause(ms: number): Promise<void>
}

export type NextPick = PickedChannel | { readonly refusal: Refusal } | undefined

export class ChannelPicker {
  readonly #parts: ChannelPickerParts

  constructor(parts: ChannelPickerParts) {
    this.#parts = parts
  }

  /** Prepares a call that is about to be forwarded. */
  begin(route: Route, exchange: PickingCall): void {
    const { retries, nowMs } = this.#parts
    exchange.routing.retryLease = retries.begin(route.group.requestedModel, nowMs(), route.permit.caller.accountId)
    exchange.routing.affinity = affinityOf(route, exchange)
  }

  /** Learns what other processes know of the conversation of a call. Undefined where there is nothing to wait for. */
  recall(route: Route, exchange: PickingCall): Promise<void> | undefined {
    const { affinity, nowMs } = this.#parts
    if (!affinity.isShared) return undefined
    const conversation = affinityOf(route, exchange)
    return conversation && affinity.recall(conversation.name, nowMs())
  }

  /** What routing would choose, and from what. Nothing is begun. */
  explain(route: Route, exchange: PickingCall): ExplainedPick {
    const { affinity, nowMs: now, chance } = this.#parts
    const nowMs = now()
    const { accountId } = route.permit.caller
    const conversation = affinityOf(route, exchange)?.name
    const kept = conversation === undefined ? undefined : affinity.peek(conversation, nowMs)
    const [keptOn, keptModel, tokens] = [kept?.channelId, kept?.model, this.tokensOf(exchange)]
    const waitMs = bounds.queuedMsMax
    const choosing = {
      targets: optionsOf(route),
      policy: route.group.policy,
      tried: [],
      affinityChannel: keptOn,
      affinityModel: keptModel,
      accountId,
      tokens,
      waitMs,
      nowMs,
      random: chance,
    }
    return {
      conversationKey: conversation,
      preferredChannel: keptOn,
      choice: chooseChannel(choosing),
      channels: explainChannels(choosing),
    }
  }

  /** Returns undefined if no further attempt is allowed, and a promise only where the call must wait. */
  next(route: Route, exchange: PickingCall): NextPick | Promise<NextPick> {
    const { attemptsMax, nowMs } = this.#parts
    const { attempts } = exchange
    const { retryLease } = exchange.routing
    if (attempts.length >= attemptsMax) return undefined
    if (attempts.length > 0 && !retryLease!.mayRetry(nowMs())) return undefined
    const choice = this.#chooseNow(route, exchange, { waitMs: bounds.queuedMsMax, hasWaited: false })
    return choice.kind === 'try' ? this.#take(route, exchange, choice) : this.#waitFor(route, exchange, choice)
  }

  /** Waits until a channel can take the call, but not for long. */
  async #waitFor(route: Route, exchange: PickingCall, first: ChannelChoice): Promise<NextPick> {
    const { nowMs, waitQueues } = this.#parts
    const { attempts } = exchange
    const { stop } = exchange.lifetime
    let untilMs = nowMs() + bounds.queuedMsMax
    let choice = first
    for (let again = false; ; ) {
      if (choice.kind === 'try') return this.#take(route, exchange, choice)
      if (choice.kind === 'none') {
        if (again) waitQueues.wakeNext(route.group.requestedModel)
        return attempts.length === 0 ? noChannel(route, choice.retryAfterMs) : await this.#retrySame(route, exchange)
      }
      if (choice.forMs !== undefined) {
        await stop.race(this.#parts.pause(choice.forMs))
        untilMs = 0 // the channel is ready by now, or is tried anyway
      } else {
        const { accountId } = route.permit.caller
        const waited = await waitQueues.wait(route.group.requestedModel, accountId, {
          stop,
          withinMs: Math.max(0, untilMs - nowMs()),
          atFront: again,
        })
        if (waited === 'full') return noChannel(route, 1_000)
        again = true
      }
      choice = this.#chooseNow(route, exchange, { waitMs: Math.max(0, untilMs - nowMs()), hasWaited: again })
    }
  }

  /** A new call stands behind those that already wait. */
  #chooseNow(route: Route, exchange: PickingCall, { waitMs, hasWaited }: ChooseNow): ChannelChoice {
    const { attempts } = exchange
    const mustQueue =
      !hasWaited && attempts.length === 0 && this.#parts.waitQueues.hasWaiters(route.group.requestedModel)
    return mustQueue ? waitInQueue : this.#choose(route, exchange, { tried: attempts, waitMs })
  }

  #choose(route: Route, exchange: PickingCall, { tried, waitMs }: ChoiceLimits): ChannelChoice {
    const { affinity, nowMs: now, chance } = this.#parts
    const { affinity: affinityKey } = exchange.routing
    const { accountId } = route.permit.caller
    const nowMs = now()
    const kept = affinityKey && affinity.get(affinityKey.name, nowMs)
    const choosing = {
      targets: optionsOf(route),
      policy: route.group.policy,
      tried,
      affinityChannel: kept?.channelId,
      affinityModel: kept?.model,
      accountId,
      tokens: this.tokensOf(exchange),
      waitMs,
      nowMs,
      random: chance,
    }
    const choice = chooseChannel(choosing)
    if (choice.kind === 'try')
      exchange.routing.routeChoice ??= explainChoice(choosing, choice, affinityKey !== undefined)
    return choice
  }

  #take(route: Route, exchange: PickingCall, { target, channel }: TryChoice): PickedChannel {
    const sinceMs = this.#parts.nowMs()
    const asking = { accountId: route.permit.caller.accountId, model: target.name }
    const channelUse = channel.health.begin(this.tokensOf(exchange), sinceMs, asking)
    return {
      candidate: candidateOf(route, target),
      targetChannel: channel as TargetChannel,
      channelUse,
      sinceMs,
    }
  }

  /** No other channel is left: picks one of those that failed, after a pause. */
  async #retrySame(route: Route, exchange: PickingCall): Promise<NextPick> {
    const { pause, chance } = this.#parts
    const { attempts } = exchange
    const { stop } = exchange.lifetime
    const last = attempts.at(-1)!
    if (!isTransient(last)) return undefined
    const waitMs = Math.max(backoffMs(attempts.length, chance()), last.retryAfterMs ?? 0)
    if (waitMs > bounds.retryPauseMsMax) return undefined
    await stop.race(pause(waitMs))
    const permanent = attempts.filter(tried => !isTransient(tried))
    const choice = this.#choose(route, exchange, { tried: permanent, waitMs: 0 })
    return choice.kind === 'try' ? this.#take(route, exchange, choice) : undefined
  }

  /** The channel has answered, so that later turns of the conversation prefer it. */
  onAnswered({ routing: { affinity: affinityKey } }: PickingCall, { targetChannel, candidate }: PickedChannel): void {
    if (affinityKey === undefined) return
    const { affinity, nowMs } = this.#parts
    const kept = { channelId: targetChannel.id, model: candidate.option.name }
    affinity.set(affinityKey.name, kept, { ttlMs: affinityKey.cacheMs, nowMs: nowMs() })
  }

  /** Wakes waiting calls, because a channel may have room. */
  onChannelFreed(): void {
    this.#parts.waitQueues.wakeNext()
  }

  /** The tokens that the call is expected to use. */
  tokensOf({ call }: PickingCall): number {
    return call === undefined ? 0 : expectedTokens(call)
  }

  /** Reports the end of the call to its channel and to the retry budget. */
  onCallOver({ attempt, routing: { retryLease }, settlement: { ending, usedTokens } }: Exchange): void {
    attempt.channelUse?.end({ verdict: ending === undefined ? 'left' : verdictOf(ending), tokens: usedTokens })
    retryLease?.end()
  }
}

/** The candidates as routing sees them: the group's own list where none was dropped, because it has a plan already. */
function optionsOf(route: Route): readonly TargetOption[] {
  return isWhole(route) ? route.group.options : route.candidates.map(({ option }) => option)
}

function isWhole({ group: { options }, candidates }: Route): boolean {
  for (let at = 0; at < candidates.length; at++) if (candidates[at]!.option !== options[at]) return false
  return candidates.length === options.length
}

export function candidateOf({ candidates }: Route, target: TargetOption): Candidate {
  const [first] = candidates
  return first!.option === target ? first! : candidates.find(({ option }) => option === target)!
}

/** Undefined where there is only one channel, so that no preference is needed. */
function affinityOf(route: Route, exchange: PickingCall): RoutingState['affinity'] {
  const hasSeveralChannels = route.candidates.length > 1 || route.candidates[0]!.channels.length > 1
  const name = hasSeveralChannels ? conversationKeyOf(route, exchange) : undefined
  if (name === undefined) return undefined
  const { call, protocol } = exchange
  return { name, cacheMs: protocol.cacheMs?.(call!.json) }
}

export interface ExplainedPick {
  /** The key of the conversation; undefined where affinity does not apply. */
  readonly conversationKey: string | undefined
  readonly preferredChannel: string | undefined
  readonly choice: ChannelChoice
  readonly channels: readonly ExplainedChannel[]
}

interface ChoiceLimits {
  readonly tried: readonly TriedChannel[]
  /** How long the call may wait for a channel. */
  readonly waitMs: number
}

interface ChooseNow {
  readonly waitMs: number
  /** The call has waited in the queue. */
  readonly hasWaited: boolean
}

const waitInQueue: ChannelChoice = { kind: 'wait' }

/** Failures that may pass in a moment and for which the upstream did no work. */
const isTransient = ({ verdict, isRetryable }: FinishedAttempt): boolean =>
  isRetryable === true && (verdict === 'broken' || verdict === 'rate_limited')

const noChannel = ({ group }: Route, retryAfterMs: number): { readonly refusal: Refusal } => ({
  refusal: new Refusal('no_channel', group.requestedModel, { retryAfterMs }),
})

/** What the end of an opened answer means for the health of its channel. */
function verdictOf({ outcome, error }: CallEnding): AttemptVerdict | 'left' {
  if (outcome === 'completed') return 'answered'
  // A caller can provoke an answer that is too large. But a stalled stream is the channel's fault.
  const isStalled = outcome === 'over_bound' && error === 'upstream_too_slow'
  return outcome === 'upstream_failed' || isStalled ? 'broken' : 'left'
}
