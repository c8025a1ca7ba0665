// Chooses the channel of the next attempt. Pure: the caller passes in everything, also time and random numbers.
//
// The channel that has answered the conversation before comes first, if it can take the call. Otherwise the order is:
// priority; inside a priority, targets that need no translation; among those, the policy decides. Channels that cannot
// take the call are skipped. When no channel can, the call waits if the wait is short, or is sent to the channel that
// recovers next: health alone never refuses a call that was not tried.

import type { PolicyName } from '../../store/rules/rules.ts'
import type { TriedChannel } from '../attempts.ts'
import type { BlockReason, CallSubject, FullReason } from '../health/health.ts'
import type { PlanGroup, PlannedChannel, PlannedTarget } from './plan.ts'
import { getPlan } from './plan.ts'
import type { ChannelOption, TargetOption } from './target-option.ts'
import type { PooledChannel } from './weighted-pool.ts'
import { ChannelTier, drawIndex } from './weighted-pool.ts'

/** Everything that a choice depends on. */
export interface ChoiceInput {
  readonly targets: readonly TargetOption[]
  readonly policy: PolicyName
  /** Channels that this call has tried. They are not tried again. */
  readonly tried: readonly TriedChannel[]
  /** The id of the channel that has answered this conversation before. */
  readonly affinityChannel?: string | undefined
  /** The model that it answered with, `<provider>/<model>`; undefined: any model. */
  readonly affinityModel?: string | undefined
  /** The account of the caller. */
  readonly accountId?: number | undefined
  /** The estimated tokens of the call. */
  readonly tokens: number
  /** How long the call may wait for a channel. 0: not at all; undefined: only for a channel that is full. */
  readonly waitMs?: number | undefined
  readonly nowMs: number
  random(): number
}

export type ChannelChoice =
  /** `nearest`: all channels are blocked, and this one recovers next. */
  | {
      readonly kind: 'try'
      readonly target: TargetOption
      readonly channel: ChannelOption
      readonly reason: 'kept' | 'policy' | 'nearest'
    }
  /** Every usable channel is full, or one becomes available in `forMs`. */
  | { readonly kind: 'wait'; readonly forMs?: number }
  /** No channel is left to try. */
  | { readonly kind: 'none'; readonly retryAfterMs: number }

/** Why a channel is skipped. */
export type SkipReason = 'tried' | BlockReason | FullReason

/** How many weighted draws are made before every channel is checked. */
const DRAWS_MAX = 8
/** Up to this many channels are all compared; of a larger group a sample is compared. */
const COMPARED_ALL_MAX = 8
const SAMPLE_SIZE = 4
const RETRY_AFTER_MS = 1_000

export function chooseChannel(input: ChoiceInput): ChannelChoice {
  const { groups } = getPlan(input.targets)
  const affine = chooseByAffinity(groups, input)
  if (affine !== undefined) return affine
  return (
    chooseFrom(groups, input) ??
    chooseFrom(groups, { ...input, ignoresExcessBreakers: true }) ??
    chooseWithoutAvailable(groups, input)
  )
}

function chooseFrom(groups: readonly PlanGroup[], input: PickInput): ChannelChoice | undefined {
  for (const group of groups) {
    const found = pickIn(group, input)
    if (found !== undefined) return tryOn(found, input)
  }
  return undefined
}

/**
 * `ignoresExcessBreakers`: where open breakers block more than half of a model's channels, the excess counts as
 * available. Only when all healthy channels are full: a dead channel is always the least busy one, and would draw calls
 * away from the healthy ones.
 */
type PickInput = ChoiceInput & { readonly ignoresExcessBreakers?: boolean }

function tryOn({ plannedTarget, pooled }: PlannedChannel, input: ChoiceInput): ChannelChoice {
  const { channel } = pooled
  const isAvailable =
    channel.health.blockedBy(input.tokens, input.nowMs, subjectOf(plannedTarget.target, input)) === undefined
  return { kind: 'try', target: plannedTarget.target, channel, reason: isAvailable ? 'policy' : 'nearest' }
}

const subjectOf = ({ name: model }: TargetOption, { accountId = 0 }: ChoiceInput): CallSubject => ({ accountId, model })

/** Why the channel cannot take the call; undefined if it can. */
function skipReason(entry: PlannedTarget, channel: ChannelOption, input: PickInput): SkipReason | undefined {
  const { tried, tokens, nowMs, ignoresExcessBreakers = false } = input
  if (isTried(tried, channel.id, entry.target.name)) return 'tried'
  const { health } = channel
  const subject = subjectOf(entry.target, input)
  const blocked = health.blockedBy(tokens, nowMs, subject)
  const isIgnored = ignoresExcessBreakers && blocked === 'broken' && isExcessBreaker(entry, channel, nowMs)
  if (blocked !== undefined && !isIgnored) return blocked
  return health.fullBy(tokens, nowMs, subject)
}

/** The channel's breaker is open, but so are too many others. A breaker of a single account does not count here. */
function isExcessBreaker({ allChannels }: PlannedTarget, { health }: ChannelOption, nowMs: number): boolean {
  const breakerMs = health.breakerOpenMs(nowMs)
  return breakerMs !== undefined && nowMs + breakerMs <= allChannels.exemptUntilMs(nowMs)
}

/** A channel that failed with one model may work with another, unless its credential was at fault. */
function isTried(tried: readonly TriedChannel[], id: string, name: string): boolean {
  for (const { channelId, model, verdict } of tried) {
    if (channelId !== id) continue
    if (model === undefined || model === name || verdict === 'credential_bad' || verdict === 'quota_spent') return true
  }
  return false
}

/** Affinity ignores channels and targets without weight: an operator is phasing them out. */
function chooseByAffinity(groups: readonly PlanGroup[], input: ChoiceInput): ChannelChoice | undefined {
  const { affinityChannel, affinityModel, tried, tokens, nowMs } = input
  if (affinityChannel === undefined) return undefined
  for (const { targets } of groups) {
    for (const { target, pool } of targets) {
      const channel =
        affinityModel === undefined || affinityModel === target.name ? pool.channel(affinityChannel) : undefined
      if (channel === undefined || !(channel.weight > 0) || !(target.weight > 0)) continue
      if (isTried(tried, affinityChannel, target.name)) continue
      const isAvailable = channel.health.stateFor(tokens, nowMs, subjectOf(target, input)) === 'available'
      return isAvailable ? { kind: 'try', target, channel, reason: 'kept' } : undefined
    }
  }
  return undefined
}

function pickIn(group: PlanGroup, input: PickInput): PlannedChannel | undefined {
  if (input.policy === 'cheapest') {
    for (const cheaper of group.byPrice) {
      const found = bestOfDraws(cheaper, input, 2)
      if (found !== undefined) return found
    }
    return group.byPrice.length > 0 ? undefined : bestOfDraws(group, input, 2)
  }
  if (input.policy === 'weighted') return drawIn(group, input)
  if (input.policy === 'balanced') return bestOfDraws(group, input, 2)
  return group.channelCount > COMPARED_ALL_MAX ? bestOfDraws(group, input, SAMPLE_SIZE) : bestOfAll(group, input)
}

function bestOfDraws(group: PlanGroup, input: PickInput, draws: number): PlannedChannel | undefined {
  let best = drawIn(group, input)
  if (best === undefined || group.channelCount === 1) return best
  let bestScore = scoreOf(group, best, input)
  for (let draw = 1; draw < draws; draw++) {
    const other = drawIn(group, input)!
    if (other.pooled === best.pooled) continue
    const score = scoreOf(group, other, input)
    if (score < bestScore) [best, bestScore] = [other, score]
  }
  return best
}

/** Starts from a weighted draw and replaces it only by a better one, so that the weights decide among equals. */
function bestOfAll(group: PlanGroup, input: PickInput): PlannedChannel | undefined {
  let best = drawIn(group, input)
  if (best === undefined) return undefined
  let bestScore = scoreOf(group, best, input)
  for (const entry of group.targets) {
    for (const pooled of availableIn(entry, input)) {
      const score = scoreOf(group, { plannedTarget: entry, pooled }, input)
      if (score < bestScore) [best, bestScore] = [{ plannedTarget: entry, pooled }, score]
    }
  }
  return best
}

/** The available channels of the first tier that has any. */
function availableIn(entry: PlannedTarget, input: PickInput): readonly PooledChannel[] {
  for (const { channels } of entry.tiers) {
    const available = channels.filter(({ channel }) => skipReason(entry, channel, input) === undefined)
    if (available.length > 0) return available
  }
  return []
}

/** The score of a channel under the policy; a lower score is better. */
function scoreOf(
  { priceMax, channelCount }: PlanGroup,
  { plannedTarget, pooled }: PlannedChannel,
  { policy, nowMs }: ChoiceInput,
): number {
  const { health } = pooled.channel
  if (policy === 'fastest') return health.expectedMs(nowMs)
  if (policy === 'weighted') return 0
  // Active calls relative to the channel's share. Without active calls all channels have the same load.
  const load = 1 + health.activeCalls / (plannedTarget.share * pooled.share * channelCount)
  if (policy === 'least_busy') return load
  const price = priceMax > 0 ? plannedTarget.target.price / priceMax : 0
  return load * (TIME_OFFSET_MS + health.expectedMs(nowMs)) * (PRICE_OFFSET + price)
}

/** Added to time and price, so that differences much smaller than these hardly change the score. */
const TIME_OFFSET_MS = 100
const PRICE_OFFSET = 0.1

/** A weighted draw: first the target, then one of its channels. A target without an available channel is replaced. */
function drawIn({ targets, sums }: PlanGroup, input: PickInput): PlannedChannel | undefined {
  const drawn = targets.length === 1 ? 0 : drawIndex(sums, input.random())
  const found = drawChannel(targets[drawn]!, input)
  if (found !== undefined || targets.length === 1) return found
  const rest = targets.filter((_, index) => index !== drawn)
  while (rest.length > 0) {
    let position = input.random() * rest.reduce((sum, { share }) => sum + share, 0)
    const index = rest.findIndex(({ share }) => (position -= share) < 0)
    const [entry] = rest.splice(Math.max(0, index), 1)
    const other = drawChannel(entry!, input)
    if (other !== undefined) return other
  }
  return undefined
}

function drawChannel(entry: PlannedTarget, input: PickInput): PlannedChannel | undefined {
  for (const tier of entry.tiers) {
    const pooled = drawFromTier(entry, tier, input)
    if (pooled !== undefined) return { plannedTarget: entry, pooled }
  }
  return undefined
}

function drawFromTier(entry: PlannedTarget, tier: ChannelTier, input: PickInput): PooledChannel | undefined {
  const { channels } = tier
  const drawn = drawAvailable(entry, tier, input)
  if (drawn !== undefined || channels.length === 1) return drawn
  const cached = tier.availableAt(input.nowMs, entry.target.name)
  if (cached !== undefined) {
    const found = cached.channels.length > 0 ? drawAvailable(entry, cached, input) : undefined
    if (found !== undefined || cached.channels.length === 0) return found
  }
  const available = channels.filter(({ channel }) => skipReason(entry, channel, input) === undefined)
  return available.length > 0 ? available[drawIndex(new ChannelTier(available).sums, input.random())] : undefined
}

/** Draws a few times. Undefined when no draw hits a channel that can take the call. */
function drawAvailable(
  entry: PlannedTarget,
  { channels, sums }: ChannelTier,
  input: PickInput,
): PooledChannel | undefined {
  for (let draws = Math.min(DRAWS_MAX, channels.length); draws > 0; draws--) {
    const pooled = channels[channels.length === 1 ? 0 : drawIndex(sums, input.random())]!
    if (skipReason(entry, pooled.channel, input) === undefined) return pooled
  }
  return undefined
}

/** What remains when the draws found no channel that can take the call. */
interface Fallbacks {
  /** A channel that is available after all, because cached results were out of date. */
  available: PlannedChannel | undefined
  /** The blocked channel that recovers next, and when. */
  nearest: PlannedChannel | undefined
  nearestMs: number
  /** A channel that has more active calls than its learned limit. */
  busy: PlannedChannel | undefined
  /** Whether a channel has as many active calls as its operator allows. */
  isFull: boolean
  /** When the first channel becomes available whose wait is known. */
  readyMs: number
}

function chooseWithoutAvailable(groups: readonly PlanGroup[], input: ChoiceInput): ChannelChoice {
  const fallbacks: Fallbacks = {
    available: undefined,
    nearest: undefined,
    nearestMs: Infinity,
    busy: undefined,
    isFull: false,
    readyMs: Infinity,
  }
  for (const candidate of channelsIn(groups)) noteFallback(candidate, input, fallbacks)
  const { available, nearest, busy, isFull, readyMs } = fallbacks
  if (available !== undefined) return tryOn(available, input)
  const { waitMs } = input
  if (waitMs !== undefined && readyMs <= waitMs) return { kind: 'wait', forMs: readyMs }
  if (waitMs !== 0 && (isFull || busy !== undefined)) return { kind: 'wait' }
  const found = busy ?? nearest
  if (found !== undefined) return tryOn(found, input)
  return { kind: 'none', retryAfterMs: readyMs === Infinity ? RETRY_AFTER_MS : Math.max(1, Math.ceil(readyMs)) }
}

function noteFallback(candidate: PlannedChannel, input: ChoiceInput, fallbacks: Fallbacks): void {
  const { tokens, nowMs, tried } = input
  const { plannedTarget, pooled } = candidate
  const { health } = pooled.channel
  const reason = skipReason(plannedTarget, pooled.channel, input)
  if (reason === undefined) return void (fallbacks.available ??= candidate)
  if (reason === 'tried') return
  const subject = subjectOf(plannedTarget.target, input)
  const full = health.fullBy(tokens, nowMs, subject)
  if (full === 'concurrency_capped') return void (fallbacks.isFull = true)
  const availableInMs = health.availableInMs(tokens, nowMs, subject)
  const isCapped = full !== undefined && full !== 'busy'
  const isWaitKnown = reason !== 'busy' && reason !== 'broken' && reason !== 'credential_bad'
  if (isWaitKnown) {
    fallbacks.readyMs = Math.min(fallbacks.readyMs, Math.max(availableInMs, health.cappedMs(tokens, nowMs)))
  }
  if (isCapped) return
  if (reason === 'busy') fallbacks.busy ??= candidate
  // After a first attempt, a call is not sent to a channel that would certainly refuse it.
  else if ((tried.length === 0 || !isCertainRefusal(reason)) && availableInMs < fallbacks.nearestMs) {
    fallbacks.nearest = candidate
    fallbacks.nearestMs = availableInMs
  }
}

/** The upstream itself has refused, and will refuse again until the time is over. */
const isCertainRefusal = (reason: SkipReason): boolean => reason !== 'broken' && reason !== 'upstream_limit'

/** All channels, in the order in which they are tried. */
function* channelsIn(groups: readonly PlanGroup[]): Generator<PlannedChannel> {
  for (const { targets } of groups) {
    for (const entry of targets) {
      for (const { channels } of entry.tiers) for (const pooled of channels) yield { plannedTarget: entry, pooled }
    }
  }
}

/** One channel in the explanation of a call. */
export interface ExplainedChannel {
  /** The target, `<provider>/<model>`. */
  readonly model: string
  /** The id of the channel. */
  readonly channel: string
  /** Why the channel is skipped; null when it can take the call. */
  readonly dropped: SkipReason | null
  readonly availableInMs: number
  /** Its part of the calls of its group, from 0 to 1. */
  readonly share: number
  /** Its score under the policy; a lower score is better. */
  readonly score: number
}

/** Explains every channel with the functions that choose() uses, in the order in which channels are tried. */
export function explainChannels(input: ChoiceInput): readonly ExplainedChannel[] {
  const { tokens, nowMs } = input
  return getPlan(input.targets).groups.flatMap(group =>
    [...channelsIn([group])].map(candidate => {
      const { plannedTarget, pooled } = candidate
      const { channel } = pooled
      return {
        model: plannedTarget.target.name,
        channel: channel.id,
        dropped: skipReason(plannedTarget, channel, input) ?? null,
        availableInMs: channel.health.availableInMs(tokens, nowMs, subjectOf(plannedTarget.target, input)),
        share: plannedTarget.share * pooled.share,
        score: scoreOf(group, candidate, input),
      }
    }),
  )
}
