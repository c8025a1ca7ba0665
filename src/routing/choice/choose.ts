// Which channel is tried next, and why. Pure: everything it looks at is handed in, chance and time too.
//
// The channel that has the conversation, if it can take the call. Else by priority; inside a priority those that need
// no translation; among these by the policy. A channel that cannot take the call is passed over; when none can, the
// call waits if that is not for long, or goes to the one that is the next to recover: it is never turned away untried
// for what we believe of the channels.

import type { PolicyName } from '../../store/rules/rules.ts'
import type { Tried } from '../attempts.ts'
import type { Asking, Closed, Full } from '../health/health.ts'
import type { Option, Seat } from './option.ts'
import type { Candidate, Entry, Group } from './plan.ts'
import { planOf } from './plan.ts'
import type { PooledSeat } from './weighted-pool.ts'
import { drawnAt, Tier } from './weighted-pool.ts'

export interface Choosing {
  readonly options: readonly Option[]
  readonly policy: PolicyName
  /** Never twice the same in one call. */
  readonly tried: readonly Tried[]
  /** The channel that has answered this conversation before. */
  readonly keptOn?: string | undefined
  /** With which model, `<provider>/<model>`; whichever it has if not given. */
  readonly keptModel?: string | undefined
  /** Whose call it is. */
  readonly accountId?: number | undefined
  /** What the call is taken to use. */
  readonly tokens: number
  /** How long it may wait for a channel that is ready by then: 0 not at all, undefined only for a place. */
  readonly waitMs?: number | undefined
  readonly nowMs: number
  chance(): number
}

export type Choice =
  /** `nearest`: it is closed like all others, and the next to recover. */
  | { readonly kind: 'try'; readonly option: Option; readonly seat: Seat; readonly why: 'kept' | 'policy' | 'nearest' }
  /** All that could are at the bound of what they may have under way, or one will be ready in so long. */
  | { readonly kind: 'wait'; readonly forMs?: number }
  /** Nothing is left to try. */
  | { readonly kind: 'none'; readonly retryAfterMs: number }

/** Why a seat is passed over. */
export type Dropped = 'tried' | Closed | Full

/** So often a seat is drawn before all are looked at. */
const DRAWS = 8
/** Of more seats than those, so many are compared. */
const COMPARED_ALL_MAX = 8
const COMPARED = 4
const RETRY_AFTER_MS = 1_000

export function choose(choosing: Choosing): Choice {
  const { groups } = planOf(choosing.options)
  const kept = keptSeat(groups, choosing)
  if (kept !== undefined) return kept
  return pickFrom(groups, choosing) ?? pickFrom(groups, { ...choosing, spares: true }) ?? withoutOpen(groups, choosing)
}

function pickFrom(groups: readonly Group[], choosing: Sparing): Choice | undefined {
  for (const group of groups) {
    const found = pickIn(group, choosing)
    if (found !== undefined) return tryOn(found, choosing)
  }
  return undefined
}

/**
 * `spares`: of a model of which more than half is broken, some count as open. Only when the rest have all they take: a
 * dead channel is the least busy of all, and would draw the calls away from those that are well.
 */
type Sparing = Choosing & { readonly spares?: boolean }

function tryOn({ entry, pooled }: Candidate, choosing: Choosing): Choice {
  const { seat } = pooled
  const isOpen = seat.health.closedBy(choosing.tokens, choosing.nowMs, askingFor(entry.option, choosing)) === undefined
  return { kind: 'try', option: entry.option, seat, why: isOpen ? 'policy' : 'nearest' }
}

const askingFor = ({ name: model }: Option, { accountId = 0 }: Choosing): Asking => ({ accountId, model })

/** Why it cannot take the call, or undefined if it can. */
function droppedFor(entry: Entry, seat: Seat, choosing: Sparing): Dropped | undefined {
  const { tried, tokens, nowMs, spares = false } = choosing
  if (isTried(tried, seat.id, entry.option.name)) return 'tried'
  const { health } = seat
  const asking = askingFor(entry.option, choosing)
  const closed = health.closedBy(tokens, nowMs, asking)
  if (closed !== undefined && !(spares && closed === 'broken' && isSpared(entry, seat, nowMs))) return closed
  return health.fullBy(tokens, nowMs, asking)
}

/** Its breaker is closed, but too many others' are as well. One that is closed for an account alone spares nobody. */
function isSpared({ whole }: Entry, { health }: Seat, nowMs: number): boolean {
  const brokenMs = health.brokenMs(nowMs)
  return brokenMs !== undefined && nowMs + brokenMs <= whole.mercyUntilMs(nowMs)
}

/** A channel that failed with one model may do with another, unless it was its credential. */
function isTried(tried: readonly Tried[], id: string, name: string): boolean {
  for (const { channelId, model, verdict } of tried) {
    if (channelId !== id) continue
    if (model === undefined || model === name || verdict === 'credential_bad' || verdict === 'quota_spent') return true
  }
  return false
}

/** What has no weight is not kept to: it is to be used no more. */
function keptSeat(groups: readonly Group[], choosing: Choosing): Choice | undefined {
  const { keptOn, keptModel, tried, tokens, nowMs } = choosing
  if (keptOn === undefined) return undefined
  for (const { entries } of groups) {
    for (const { option, pool } of entries) {
      const seat = keptModel === undefined || keptModel === option.name ? pool.seat(keptOn) : undefined
      if (seat === undefined || !(seat.weight > 0) || !(option.weight > 0)) continue
      if (isTried(tried, keptOn, option.name)) continue
      const isOpen = seat.health.standing(tokens, nowMs, askingFor(option, choosing)) === 'open'
      return isOpen ? { kind: 'try', option, seat, why: 'kept' } : undefined
    }
  }
  return undefined
}

function pickIn(group: Group, choosing: Sparing): Candidate | undefined {
  if (choosing.policy === 'cheapest') {
    for (const cheaper of group.byPrice) {
      const found = bestOfDraws(cheaper, choosing, 2)
      if (found !== undefined) return found
    }
    return group.byPrice.length > 0 ? undefined : bestOfDraws(group, choosing, 2)
  }
  if (choosing.policy === 'weighted') return drawIn(group, choosing)
  if (choosing.policy === 'balanced') return bestOfDraws(group, choosing, 2)
  return group.seats > COMPARED_ALL_MAX ? bestOfDraws(group, choosing, COMPARED) : bestOfAll(group, choosing)
}

function bestOfDraws(group: Group, choosing: Sparing, draws: number): Candidate | undefined {
  let best = drawIn(group, choosing)
  if (best === undefined || group.seats === 1) return best
  let bestScore = scoreOf(group, best, choosing)
  for (let drawn = 1; drawn < draws; drawn++) {
    const other = drawIn(group, choosing)!
    if (other.pooled === best.pooled) continue
    const score = scoreOf(group, other, choosing)
    if (score < bestScore) [best, bestScore] = [other, score]
  }
  return best
}

/** The drawn one stays unless another is better, so that among equals the weights decide. */
function bestOfAll(group: Group, choosing: Sparing): Candidate | undefined {
  let best = drawIn(group, choosing)
  if (best === undefined) return undefined
  let bestScore = scoreOf(group, best, choosing)
  for (const entry of group.entries) {
    for (const pooled of openIn(entry, choosing)) {
      const score = scoreOf(group, { entry, pooled }, choosing)
      if (score < bestScore) [best, bestScore] = [{ entry, pooled }, score]
    }
  }
  return best
}

/** Those of the first tier that has any. */
function openIn(entry: Entry, choosing: Sparing): readonly PooledSeat[] {
  for (const { seats } of entry.tiers) {
    const open = seats.filter(({ seat }) => droppedFor(entry, seat, choosing) === undefined)
    if (open.length > 0) return open
  }
  return []
}

/** Less is better. */
function scoreOf({ priceMax, seats }: Group, { entry, pooled }: Candidate, { policy, nowMs }: Choosing): number {
  const { health } = pooled.seat
  if (policy === 'fastest') return health.expectedMs(nowMs)
  if (policy === 'weighted') return 0
  // For its weight; while nothing is under way all are alike.
  const load = 1 + health.underWay / (entry.share * pooled.share * seats)
  if (policy === 'least_busy') return load
  const price = priceMax > 0 ? entry.option.price / priceMax : 0
  return load * (NO_TIME_MS + health.expectedMs(nowMs)) * (NO_PRICE + price)
}

/** Differences below these are none. */
const NO_TIME_MS = 100
const NO_PRICE = 0.1

/** By weight among those that can take the call: first the option, whose share stays while it has any. */
function drawIn({ entries, sums }: Group, choosing: Sparing): Candidate | undefined {
  const drawn = entries.length === 1 ? 0 : drawnAt(sums, choosing.chance())
  const found = drawSeat(entries[drawn]!, choosing)
  if (found !== undefined || entries.length === 1) return found
  const rest = entries.filter((_, at) => at !== drawn)
  while (rest.length > 0) {
    let wanted = choosing.chance() * rest.reduce((sum, { share }) => sum + share, 0)
    const at = rest.findIndex(({ share }) => (wanted -= share) < 0)
    const [entry] = rest.splice(Math.max(0, at), 1)
    const other = drawSeat(entry!, choosing)
    if (other !== undefined) return other
  }
  return undefined
}

function drawSeat(entry: Entry, choosing: Sparing): Candidate | undefined {
  for (const tier of entry.tiers) {
    const pooled = drawPooled(entry, tier, choosing)
    if (pooled !== undefined) return { entry, pooled }
  }
  return undefined
}

function drawPooled(entry: Entry, tier: Tier, choosing: Sparing): PooledSeat | undefined {
  const { seats } = tier
  const drawn = drawOpen(entry, tier, choosing)
  if (drawn !== undefined || seats.length === 1) return drawn
  const openAt = tier.openAt(choosing.nowMs, entry.option.name)
  if (openAt !== undefined) {
    const seen = openAt.seats.length > 0 ? drawOpen(entry, openAt, choosing) : undefined
    if (seen !== undefined || openAt.seats.length === 0) return seen
  }
  const open = seats.filter(({ seat }) => droppedFor(entry, seat, choosing) === undefined)
  return open.length > 0 ? open[drawnAt(new Tier(open).sums, choosing.chance())] : undefined
}

/** One that can take the call, unless a few draws do not find it. */
function drawOpen(entry: Entry, { seats, sums }: Tier, choosing: Sparing): PooledSeat | undefined {
  for (let draws = Math.min(DRAWS, seats.length); draws > 0; draws--) {
    const pooled = seats[seats.length === 1 ? 0 : drawnAt(sums, choosing.chance())]!
    if (droppedFor(entry, pooled.seat, choosing) === undefined) return pooled
  }
  return undefined
}

/** What there is when no channel can take the call at this instant. */
interface Outlook {
  /** One of which that was not known a moment ago. */
  open: Candidate | undefined
  /** Closed, the next to open, and when. */
  nearest: Candidate | undefined
  nearestMs: number
  /** Has more under way than it seems to take well. */
  busy: Candidate | undefined
  /** One has as many under way as its operator lets it. */
  isFull: boolean
  /** When one may be asked again that must not be asked now. */
  readyMs: number
}

function withoutOpen(groups: readonly Group[], choosing: Choosing): Choice {
  const none = { open: undefined, nearest: undefined, busy: undefined, isFull: false }
  const outlook: Outlook = { ...none, nearestMs: Infinity, readyMs: Infinity }
  for (const candidate of candidatesOf(groups)) lookAt(candidate, choosing, outlook)
  const { open, nearest, busy, isFull, readyMs } = outlook
  if (open !== undefined) return tryOn(open, choosing)
  const { waitMs } = choosing
  if (waitMs !== undefined && readyMs <= waitMs) return { kind: 'wait', forMs: readyMs }
  if (waitMs !== 0 && (isFull || busy !== undefined)) return { kind: 'wait' }
  const found = busy ?? nearest
  if (found !== undefined) return tryOn(found, choosing)
  return { kind: 'none', retryAfterMs: readyMs === Infinity ? RETRY_AFTER_MS : Math.max(1, Math.ceil(readyMs)) }
}

function lookAt(candidate: Candidate, choosing: Choosing, outlook: Outlook): void {
  const { tokens, nowMs, tried } = choosing
  const { entry, pooled } = candidate
  const { health } = pooled.seat
  const dropped = droppedFor(entry, pooled.seat, choosing)
  if (dropped === undefined) return void (outlook.open ??= candidate)
  if (dropped === 'tried') return
  const asking = askingFor(entry.option, choosing)
  const full = health.fullBy(tokens, nowMs, asking)
  if (full === 'concurrency_capped') return void (outlook.isFull = true)
  const opensInMs = health.opensInMs(tokens, nowMs, asking)
  const isCapped = full !== undefined && full !== 'busy'
  const isTold = dropped !== 'busy' && dropped !== 'broken' && dropped !== 'credential_bad'
  if (isTold) outlook.readyMs = Math.min(outlook.readyMs, Math.max(opensInMs, health.cappedMs(tokens, nowMs)))
  if (isCapped) return
  if (dropped === 'busy') outlook.busy ??= candidate
  // A call that has been tried elsewhere is not sent where it is already known what it would be told.
  else if ((tried.length === 0 || !isToldTime(dropped)) && opensInMs < outlook.nearestMs) {
    outlook.nearest = candidate
    outlook.nearestMs = opensInMs
  }
}

/** The upstream itself has said when, or will say the same again. */
const isToldTime = (dropped: Dropped): boolean => dropped !== 'broken' && dropped !== 'told_limit'

/** In the order in which they come into question. */
function* candidatesOf(groups: readonly Group[]): Generator<Candidate> {
  for (const { entries } of groups) {
    for (const entry of entries) {
      for (const { seats } of entry.tiers) for (const pooled of seats) yield { entry, pooled }
    }
  }
}

export interface ExplainedSeat {
  /** The option's. */
  readonly model: string
  /** The channel's. */
  readonly channel: string
  /** Why it is passed over; null where it can take the call. */
  readonly dropped: Dropped | null
  readonly opensInMs: number
  /** Of the calls that come to options of its rank. */
  readonly share: number
  /** As its policy sees it; less is better. */
  readonly score: number
}

/** Every channel by the same questions that decide, in the order in which they come into question. */
export function explainSeats(choosing: Choosing): readonly ExplainedSeat[] {
  const { tokens, nowMs } = choosing
  return planOf(choosing.options).groups.flatMap(group =>
    [...candidatesOf([group])].map(candidate => {
      const { entry, pooled } = candidate
      const { seat } = pooled
      return {
        model: entry.option.name,
        channel: seat.id,
        dropped: droppedFor(entry, seat, choosing) ?? null,
        opensInMs: seat.health.opensInMs(tokens, nowMs, askingFor(entry.option, choosing)),
        share: entry.share * pooled.share,
        score: scoreOf(group, candidate, choosing),
      }
    }),
  )
}
