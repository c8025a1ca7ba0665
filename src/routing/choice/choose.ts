// Chooses the channel of the next attempt. Pure: the caller passes in everything, also time and random numbers.
//
// The channel that has answered the conversation before comes first, if it can take the call. Otherwise the order is:
// priority; inside a priority, targets that need no translation; among those, the policy decides. Channels that cannot
// take the call are skipped. When no channel can, the call waits if the wait is short, or is sent to the channel that
// recovers next: health alone never refuses a call that was not tried.

import type { PolicyName } from '../../store/rules/rules.ts'
import type { Tried } from '../attempts.ts'
import type { Asking, Closed, Full } from '../health/health.ts'
import type { Option, Seat } from './option.ts'
import type { Candidate, Entry, Group } from './plan.ts'
import { planOf } from './plan.ts'
import type { PooledSeat } from './weighted-pool.ts'
import { drawnAt, Tier } from './weighted-pool.ts'

/** Everything that a choice depends on. */
export interface Choosing {
  readonly options: readonly Option[]
  readonly policy: PolicyName
  /** Channels that this call has tried. They are not tried again. */
  readonly tried: readonly Tried[]
  /** The id of the channel that has answered this conversation before. */
  readonly keptOn?: string | undefined
  /** The model that it answered with, `<provider>/<model>`; undefined: any model. */
  readonly keptModel?: string | undefined
  /** The account of the caller. */
  readonly accountId?: number | undefined
  /** The estimated tokens of the call. */
  readonly tokens: number
  /** How long the call may wait for a channel. 0: not at all; undefined: only for a channel that is full. */
  readonly waitMs?: number | undefined
  readonly nowMs: number
  chance(): number
}

export type Choice =
  /** `nearest`: all channels are blocked, and this one recovers next. */
  | { readonly kind: 'try'; readonly option: Option; readonly seat: Seat; readonly why: 'kept' | 'policy' | 'nearest' }
  /** Every usable channel is full, or one becomes available in `forMs`. */
  | { readonly kind: 'wait'; readonly forMs?: number }
  /** No channel is left to try. */
  | { readonly kind: 'none'; readonly retryAfterMs: number }

/** Why a channel is skipped. */
export type Dropped = 'tried' | Closed | Full

/** How many weighted draws are made before every channel is checked. */
const DRAWS_MAX = 8
/** Up to this many channels are all compared; of a larger group a sample is compared. */
const COMPARED_ALL_MAX = 8
const SAMPLE_SIZE = 4
const RETRY_AFTER_MS = 1_000

export function choose(input: Choosing): Choice {
  const { groups } = planOf(input.options)
  const affine = chooseByAffinity(groups, input)
  if (affine !== undefined) return affine
  return (
    chooseFrom(groups, input) ??
    chooseFrom(groups, { ...input, ignoresExcessBreakers: true }) ??
    chooseWithoutAvailable(groups, input)
  )
}

function chooseFrom(groups: readonly Group[], input: PickInput): Choice | undefined {
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
type PickInput = Choosing & { readonly ignoresExcessBreakers?: boolean }

function tryOn({ entry, pooled }: Candidate, input: Choosing): Choice {
  const { seat } = pooled
  const isAvailable = seat.health.closedBy(input.tokens, input.nowMs, subjectOf(entry.option, input)) === undefined
  return { kind: 'try', option: entry.option, seat, why: isAvailable ? 'policy' : 'nearest' }
}

const subjectOf = ({ name: model }: Option, { accountId = 0 }: Choosing): Asking => ({ accountId, model })

/** Why the channel cannot take the call; undefined if it can. */
function skipReason(entry: Entry, seat: Seat, input: PickInput): Dropped | undefined {
  const { tried, tokens, nowMs, ignoresExcessBreakers = false } = input
  if (isTried(tried, seat.id, entry.option.name)) return 'tried'
  const { health } = seat
  const subject = subjectOf(entry.option, input)
  const blocked = health.closedBy(tokens, nowMs, subject)
  const isIgnored = ignoresExcessBreakers && blocked === 'broken' && isExcessBreaker(entry, seat, nowMs)
  if (blocked !== undefined && !isIgnored) return blocked
  return health.fullBy(tokens, nowMs, subject)
}

/** The channel's breaker is open, but so are too many others. A breaker of a single account does not count here. */
function isExcessBreaker({ whole }: Entry, { health }: Seat, nowMs: number): boolean {
  const breakerMs = health.brokenMs(nowMs)
  return breakerMs !== undefined && nowMs + breakerMs <= whole.mercyUntilMs(nowMs)
}

/** A channel that failed with one model may work with another, unless its credential was at fault. */
function isTried(tried: readonly Tried[], id: string, name: string): boolean {
  for (const { channelId, model, verdict } of tried) {
    if (channelId !== id) continue
    if (model === undefined || model === name || verdict === 'credential_bad' || verdict === 'quota_spent') return true
  }
  return false
}

/** Affinity ignores channels and targets without weight: an operator is phasing them out. */
function chooseByAffinity(groups: readonly Group[], input: Choosing): Choice | undefined {
  const { keptOn, keptModel, tried, tokens, nowMs } = input
  if (keptOn === undefined) return undefined
  for (const { entries } of groups) {
    for (const { option, pool } of entries) {
      const seat = keptModel === undefined || keptModel === option.name ? pool.seat(keptOn) : undefined
      if (seat === undefined || !(seat.weight > 0) || !(option.weight > 0)) continue
      if (isTried(tried, keptOn, option.name)) continue
      const isAvailable = seat.health.standing(tokens, nowMs, subjectOf(option, input)) === 'open'
      return isAvailable ? { kind: 'try', option, seat, why: 'kept' } : undefined
    }
  }
  return undefined
}

function pickIn(group: Group, input: PickInput): Candidate | undefined {
  if (input.policy === 'cheapest') {
    for (const cheaper of group.byPrice) {
      const found = bestOfDraws(cheaper, input, 2)
      if (found !== undefined) return found
    }
    return group.byPrice.length > 0 ? undefined : bestOfDraws(group, input, 2)
  }
  if (input.policy === 'weighted') return drawIn(group, input)
  if (input.policy === 'balanced') return bestOfDraws(group, input, 2)
  return group.seats > COMPARED_ALL_MAX ? bestOfDraws(group, input, SAMPLE_SIZE) : bestOfAll(group, input)
}

function bestOfDraws(group: Group, input: PickInput, draws: number): Candidate | undefined {
  let best = drawIn(group, input)
  if (best === undefined || group.seats === 1) return best
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
function bestOfAll(group: Group, input: PickInput): Candidate | undefined {
  let best = drawIn(group, input)
  if (best === undefined) return undefined
  let bestScore = scoreOf(group, best, input)
  for (const entry of group.entries) {
    for (const pooled of availableIn(entry, input)) {
      const score = scoreOf(group, { entry, pooled }, input)
      if (score < bestScore) [best, bestScore] = [{ entry, pooled }, score]
    }
  }
  return best
}

/** The available channels of the first tier that has any. */
function availableIn(entry: Entry, input: PickInput): readonly PooledSeat[] {
  for (const { seats } of entry.tiers) {
    const available = seats.filter(({ seat }) => skipReason(entry, seat, input) === undefined)
    if (available.length > 0) return available
  }
  return []
}

/** The score of a channel under the policy; a lower score is better. */
function scoreOf({ priceMax, seats }: Group, { entry, pooled }: Candidate, { policy, nowMs }: Choosing): number {
  const { health } = pooled.seat
  if (policy === 'fastest') return health.expectedMs(nowMs)
  if (policy === 'weighted') return 0
  // Active calls relative to the channel's share. Without active calls all channels have the same load.
  const load = 1 + health.underWay / (entry.share * pooled.share * seats)
  if (policy === 'least_busy') return load
  const price = priceMax > 0 ? entry.option.price / priceMax : 0
  return load * (TIME_OFFSET_MS + health.expectedMs(nowMs)) * (PRICE_OFFSET + price)
}

/** Added to time and price, so that differences much smaller than these hardly change the score. */
const TIME_OFFSET_MS = 100
const PRICE_OFFSET = 0.1

/** A weighted draw: first the target, then one of its channels. A target without an available channel is replaced. */
function drawIn({ entries, sums }: Group, input: PickInput): Candidate | undefined {
  const drawn = entries.length === 1 ? 0 : drawnAt(sums, input.chance())
  const found = drawChannel(entries[drawn]!, input)
  if (found !== undefined || entries.length === 1) return found
  const rest = entries.filter((_, index) => index !== drawn)
  while (rest.length > 0) {
    let position = input.chance() * rest.reduce((sum, { share }) => sum + share, 0)
    const index = rest.findIndex(({ share }) => (position -= share) < 0)
    const [entry] = rest.splice(Math.max(0, index), 1)
    const other = drawChannel(entry!, input)
    if (other !== undefined) return other
  }
  return undefined
}

function drawChannel(entry: Entry, input: PickInput): Candidate | undefined {
  for (const tier of entry.tiers) {
    const pooled = drawFromTier(entry, tier, input)
    if (pooled !== undefined) return { entry, pooled }
  }
  return undefined
}

function drawFromTier(entry: Entry, tier: Tier, input: PickInput): PooledSeat | undefined {
  const { seats } = tier
  const drawn = drawAvailable(entry, tier, input)
  if (drawn !== undefined || seats.length === 1) return drawn
  const cached = tier.openAt(input.nowMs, entry.option.name)
  if (cached !== undefined) {
    const found = cached.seats.length > 0 ? drawAvailable(entry, cached, input) : undefined
    if (found !== undefined || cached.seats.length === 0) return found
  }
  const available = seats.filter(({ seat }) => skipReason(entry, seat, input) === undefined)
  return available.length > 0 ? available[drawnAt(new Tier(available).sums, input.chance())] : undefined
}

/** Draws a few times. Undefined when no draw hits a channel that can take the call. */
function drawAvailable(entry: Entry, { seats, sums }: Tier, input: PickInput): PooledSeat | undefined {
  for (let draws = Math.min(DRAWS_MAX, seats.length); draws > 0; draws--) {
    const pooled = seats[seats.length === 1 ? 0 : drawnAt(sums, input.chance())]!
    if (skipReason(entry, pooled.seat, input) === undefined) return pooled
  }
  return undefined
}

/** What remains when the draws found no channel that can take the call. */
interface Fallbacks {
  /** A channel that is available after all, because cached results were out of date. */
  available: Candidate | undefined
  /** The blocked channel that recovers next, and when. */
  nearest: Candidate | undefined
  nearestMs: number
  /** A channel that has more active calls than its learned limit. */
  busy: Candidate | undefined
  /** Whether a channel has as many active calls as its operator allows. */
  isFull: boolean
  /** When the first channel becomes available whose wait is known. */
  readyMs: number
}

function chooseWithoutAvailable(groups: readonly Group[], input: Choosing): Choice {
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

function noteFallback(candidate: Candidate, input: Choosing, fallbacks: Fallbacks): void {
  const { tokens, nowMs, tried } = input
  const { entry, pooled } = candidate
  const { health } = pooled.seat
  const reason = skipReason(entry, pooled.seat, input)
  if (reason === undefined) return void (fallbacks.available ??= candidate)
  if (reason === 'tried') return
  const subject = subjectOf(entry.option, input)
  const full = health.fullBy(tokens, nowMs, subject)
  if (full === 'concurrency_capped') return void (fallbacks.isFull = true)
  const availableInMs = health.opensInMs(tokens, nowMs, subject)
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
const isCertainRefusal = (reason: Dropped): boolean => reason !== 'broken' && reason !== 'told_limit'

/** All channels, in the order in which they are tried. */
function* channelsIn(groups: readonly Group[]): Generator<Candidate> {
  for (const { entries } of groups) {
    for (const entry of entries) {
      for (const { seats } of entry.tiers) for (const pooled of seats) yield { entry, pooled }
    }
  }
}

/** One channel in the explanation of a call. */
export interface ExplainedSeat {
  /** The target, `<provider>/<model>`. */
  readonly model: string
  /** The id of the channel. */
  readonly channel: string
  /** Why the channel is skipped; null when it can take the call. */
  readonly dropped: Dropped | null
  readonly opensInMs: number
  /** Its part of the calls of its group, from 0 to 1. */
  readonly share: number
  /** Its score under the policy; a lower score is better. */
  readonly score: number
}

/** Explains every channel with the functions that choose() uses, in the order in which channels are tried. */
export function explainSeats(input: Choosing): readonly ExplainedSeat[] {
  const { tokens, nowMs } = input
  return planOf(input.options).groups.flatMap(group =>
    [...channelsIn([group])].map(candidate => {
      const { entry, pooled } = candidate
      const { seat } = pooled
      return {
        model: entry.option.name,
        channel: seat.id,
        dropped: skipReason(entry, seat, input) ?? null,
        opensInMs: seat.health.opensInMs(tokens, nowMs, subjectOf(entry.option, input)),
        share: entry.share * pooled.share,
        score: scoreOf(group, candidate, input),
      }
    }),
  )
}
