// What is known of one credential: how many calls it has, how its last ones went, and until when it is left alone.
//
// It lives in memory only, and each call costs it a few numbers. Whatever closes it opens by itself in time; and
// whoever chooses may ask it although it is closed, for a call that could go nowhere else.

import { bounds } from '../../base/bounds.ts'
import type { Taken } from '../../base/collections/gcra.ts'
import type { Place } from '../../base/collections/linked-list.ts'
import { Ring } from '../../base/collections/linked-list.ts'
import type { Verdict } from '../attempts.ts'
import type { ToldLimit } from '../upstream-limits/headers.ts'
import { OwnBreakers } from './account-breakers.ts'
import type { Failure } from './breaker.ts'
import { Breaker } from './breaker.ts'
import { FirstTimes } from './first-content-times.ts'
import { Closing } from './half-open.ts'
import type { ModelHealth } from './model-health.ts'
import { ModelHealths } from './model-health.ts'
import type { Caps } from './operator-caps.ts'
import { Allowance } from './operator-caps.ts'
import { Others } from './other-accounts.ts'
import { Limited } from './rate-limited.ts'

/** Whose call, and for which model of the channel's provider: some of what closes it is theirs alone. */
export interface Asking {
  readonly accountId: number
  readonly model: string
}

const anybody: Asking = { accountId: 0, model: '' }

/** How an attempt ended. */
export interface Fate {
  /** `left`: nobody waited for it any more, which says nothing of the channel. */
  readonly verdict: Verdict | 'left'
  /** From sending to the first content, or to a whole plain answer. */
  readonly firstMs?: number | undefined
  /** What the upstream asked for, as far as it can be believed. */
  readonly retryAfterMs?: number | undefined
  readonly told?: readonly ToldLimit[] | undefined
  /** It said that it has too much to do. */
  readonly overloaded?: boolean | undefined
  /** What it used; as long as nobody knows, what it was taken to use. */
  readonly tokens?: number | undefined
}

/** One attempt under way on a credential. Ends once; a second end is nothing. */
export interface Turn {
  /** Its first content is there: it may last for minutes, and has proved its channel well. */
  answered(heard: Pick<Fate, 'firstMs' | 'told'>, nowMs: number): void
  end(fate: Fate, nowMs: number): void
}

/** What closes a channel until a time that it is known. A call that could go nowhere else may try it all the same. */
export type Closed = 'credential_bad' | 'broken' | 'rate_limited' | 'quota_spent' | 'told_limit'
/** What keeps a call from it that would be one too many. */
export type Full = 'busy' | 'concurrency_capped' | 'requests_capped' | 'tokens_capped'
export type Standing = 'open' | Closed | Full

export interface HealthParts {
  readonly caps: Caps
  /** From 0 to 1. */
  chance(): number
  /** Its provider refuses the credential: it is left alone, and somebody should know. */
  onCredentialOff?(): void
  /** The same of one that has nothing left to spend. */
  onQuotaSpent?(): void
  /** It works again, by itself. */
  onWellAgain?(): void
}

/** For whoever wants to see it. */
export interface HealthSnapshot {
  readonly state: Standing
  readonly opensInMs: number
  readonly underWay: number
  /** As learned; null while it has none. */
  readonly limit: number | null
  readonly firstMs: number | null
  readonly lastFailure: { readonly verdict: Verdict; readonly agoMs: number } | null
  /** Attempts whose end nobody told. */
  readonly lost: number
}

const CREDENTIAL = { firstMs: 300_000, mostMs: 300_000 }
const QUOTA = { firstMs: 60_000, mostMs: bounds.channelClosedMsMax }
/** One may be provoked by what was asked for; with nothing good in between it is the credential. */
const FORBIDDEN_IN_A_ROW = 5
/** Until a channel has shown how long it takes, and while the first call is on its way to find out. */
const UNKNOWN_FIRST_MS = 1_000
/** Fewer calls than these are not too many, however slow they are. */
const SLOW_FROM = 8

export class Health {
  caps: Caps
  readonly #parts: HealthParts
  readonly #turns = new Ring<OneTurn>()
  #breaker = new Breaker<OneTurn>()
  #own = new OwnBreakers<OneTurn>()
  #credential = new Closing<OneTurn>(CREDENTIAL)
  #quota = new Limited(QUOTA)
  readonly #models = new ModelHealths()
  readonly #allowance = new Allowance()
  readonly #firstTimes = new FirstTimes()
  /** Of those who were answered. */
  readonly #others = new Others()
  #steps = 0
  #refusedInRow = 0
  /** Of whom all in that row are; undefined when they are of several. */
  #refusedOf: number | undefined
  /** Turns that have neither answered nor ended. */
  #unanswered = 0
  #lost = 0
  #lastFailure: { readonly verdict: Verdict; readonly atMs: number } | undefined

  constructor(parts: HealthParts) {
    this.caps = parts.caps
    this.#parts = parts
  }

  get underWay(): number {
    return this.#turns.size
  }

  begin(tokens: number, nowMs: number, { accountId, model }: Asking = anybody): Turn {
    this.#reap(nowMs)
    const taken = this.#allowance.take(this.caps, tokens, nowMs)
    const at = this.#models.of(model, nowMs)
    at.told.take(tokens, nowMs)
    at.underWay++
    const row = { step: ++this.#steps, accountId, at, tokens, taken, expiresMs: nowMs + bounds.turnMsMax }
    const turn = new OneTurn(this, row)
    turn.place = this.#turns.add(turn)
    this.#unanswered++
    this.#breaker.enter(turn, nowMs)
    this.#own.of(accountId)?.enter(turn, nowMs)
    this.#credential.enter(turn, nowMs)
    return turn
  }

  standing(tokens: number, nowMs: number, asking?: Asking): Standing {
    return this.closedBy(tokens, nowMs, asking) ?? this.fullBy(tokens, nowMs, asking) ?? 'open'
  }

  /** `broken` comes last: when it is said, nothing else closes it. */
  closedBy(tokens: number, nowMs: number, { accountId, model }: Asking = anybody): Closed | undefined {
    if (!this.#credential.passes(nowMs)) return 'credential_bad'
    if (this.#quota.leftMs(nowMs) > 0) return 'quota_spent'
    const limited = this.#models.look(model).closedBy(tokens, nowMs)
    if (limited !== undefined) return limited
    const isOpen = this.#breaker.passes(nowMs) && (this.#own.of(accountId)?.passes(nowMs) ?? true)
    return isOpen ? undefined : 'broken'
  }

  /** How long its breaker for all still holds it closed: 0 while one call tries it, undefined when it does not. */
  brokenMs(nowMs: number): number | undefined {
    return this.#breaker.passes(nowMs) ? undefined : this.#breaker.leftMs(nowMs)
  }

  fullBy(tokens: number, nowMs: number, { model }: Asking = anybody): Full | undefined {
    const { concurrency = Infinity } = this.caps
    const at = this.#models.look(model)
    const limit = at.limit.at(nowMs)
    if (this.#turns.size >= concurrency || at.underWay >= limit) {
      this.#reap(nowMs)
      if (this.#turns.size >= concurrency) return 'concurrency_capped'
      if (at.underWay >= limit) return 'busy'
    }
    return this.#allowance.cappedBy(this.caps, tokens, nowMs)
  }

  /** Until nothing closes it any more, as far as that is known. */
  opensInMs(tokens: number, nowMs: number, { accountId, model }: Asking = anybody): number {
    const brokenMs = Math.max(this.#breaker.leftMs(nowMs), this.#own.of(accountId)?.leftMs(nowMs) ?? 0)
    const closedMs = Math.max(brokenMs, this.#credential.leftMs(nowMs), this.#quota.leftMs(nowMs))
    return Math.max(closedMs, this.#models.look(model).opensInMs(tokens, nowMs))
  }

  /** Until its caps let so much through. */
  cappedMs(tokens: number, nowMs: number): number {
    return this.#allowance.cappedMs(this.caps, tokens, nowMs)
  }

  /** What its next first content may take: the better, the longer it was not seen, until somebody goes and sees. */
  expectedMs(nowMs: number): number {
    if (this.#unanswered === 0) return this.#firstTimes.hopedMs(nowMs)
    return this.#firstTimes.lastMs ?? UNKNOWN_FIRST_MS
  }

  /** Forgets all that closes it; what is under way still counts. For a credential that was replaced, or mended. */
  reset(): void {
    this.#breaker = new Breaker()
    this.#own = new OwnBreakers()
    this.#credential = new Closing(CREDENTIAL)
    this.#quota = new Limited(QUOTA)
    this.#refusedInRow = 0
    this.#lastFailure = undefined
    for (const model of this.#models.all()) model.reset()
  }

  /** Of all its models together: what closes one of them is told where nothing else is. */
  snapshot(nowMs: number): HealthSnapshot {
    const last = this.#lastFailure
    let [state, opensInMs, limit] = [this.standing(0, nowMs), this.opensInMs(0, nowMs), Infinity]
    for (const model of this.#models.all()) {
      if (state === 'open') state = model.closedBy(0, nowMs) ?? state
      opensInMs = Math.max(opensInMs, model.opensInMs(0, nowMs))
      limit = Math.min(limit, model.limit.at(nowMs))
    }
    const { lastMs } = this.#firstTimes
    return {
      ...{ state, opensInMs },
      underWay: this.#turns.size,
      limit: limit === Infinity ? null : limit,
      firstMs: lastMs === undefined ? null : Math.round(lastMs),
      lastFailure: last === undefined ? null : { verdict: last.verdict, agoMs: nowMs - last.atMs },
      lost: this.#lost,
    }
  }

  /** Only for its own turns, once each. */
  noteAnswer(turn: OneTurn, { firstMs, told }: Pick<Fate, 'firstMs' | 'told'>, nowMs: number): void {
    const { at, step, accountId } = turn
    const { limit, underWay } = at
    if (told !== undefined) at.told.tell(told, nowMs)
    this.#unanswered--
    if (firstMs !== undefined) {
      this.#firstTimes.note(firstMs, nowMs)
      const tells = underWay >= SLOW_FROM && limit.tells(step)
      if (tells && this.#firstTimes.surges) limit.slow(nowMs, { underWay, step: this.#steps })
    }
    limit.well(underWay)
    this.#breaker.noteWell(nowMs)
    this.#own.of(accountId)?.noteWell(nowMs)
    this.#others.note(accountId, nowMs)
    this.#refusedInRow = 0
    this.#noteThere(turn)
    at.rate.well(step)
    if (this.#quota.well(step)) this.#parts.onWellAgain?.()
    if (!this.#credential.isBefore(step)) return
    this.#credential.open()
    this.#parts.onWellAgain?.()
  }

  /** Only for its own turns, once each. */
  noteEnd(turn: OneTurn, fate: Fate, nowMs: number): void {
    const { verdict } = fate
    const { at } = turn
    const load = { underWay: at.underWay, step: this.#steps }
    this.#turns.remove(turn.place!)
    turn.place = undefined
    at.underWay--
    if (!turn.isAnswered) this.#unanswered--
    const isOwnProbe = this.#own.of(turn.accountId)?.leave(turn) ?? false
    const isProbe = this.#breaker.leave(turn) || isOwnProbe
    this.#credential.leave(turn)
    const isUsed = verdict === 'answered' || verdict === 'left'
    const used = fate.tokens ?? (isUsed ? turn.tokens : 0)
    this.#allowance.correct(turn, used, nowMs)
    at.told.correct(used - turn.tokens, nowMs)
    if (fate.told !== undefined) at.told.tell(fate.told, nowMs)
    if (isUsed) return
    const isTooMuch = fate.overloaded === true || verdict === 'rate_limited' || verdict === 'too_slow'
    if (isTooMuch && at.limit.tells(turn.step)) at.limit.overloaded(nowMs, load)
    if (verdict !== 'caller_at_fault') this.#lastFailure = { verdict, atMs: nowMs }
    if (verdict === 'broken' || verdict === 'too_slow') this.#noteBroken(turn, isProbe, nowMs)
    else this.#noteThere(turn)
    if (verdict === 'credential_bad' || verdict === 'forbidden') this.#noteRefused(turn, verdict, nowMs)
    if (verdict === 'rate_limited' || verdict === 'quota_spent') this.#noteLimited(turn, fate, nowMs)
  }

  /** It answers, whatever it says. */
  #noteThere(turn: OneTurn): void {
    this.#breaker.noteThere(turn)
    this.#own.of(turn.accountId)?.noteThere(turn)
  }

  #noteBroken(turn: OneTurn, isProbe: boolean, nowMs: number): void {
    const answersOthers = (accountId: number): boolean => this.#others.areThere(accountId, nowMs)
    const failure: Failure = { isProbe, steps: this.#steps, spread: this.#spread(), answersOthers }
    if (this.#own.noteFailed(turn, failure, nowMs)) return
    const culprit = this.#breaker.noteFailed(turn, failure, nowMs)
    if (culprit === undefined || this.#own.open(culprit, failure, nowMs)) return
    this.#breaker.close(failure, nowMs)
  }

  /** One account alone does not switch off what answers others. */
  #noteRefused({ step, accountId }: OneTurn, verdict: Verdict, nowMs: number): void {
    this.#refusedOf = this.#refusedInRow === 0 || this.#refusedOf === accountId ? accountId : undefined
    this.#refusedInRow++
    if (verdict === 'forbidden' && this.#refusedInRow < FORBIDDEN_IN_A_ROW) return
    if (this.#refusedOf !== undefined && this.#others.areThere(accountId, nowMs)) return
    const isNew = !this.#credential.isClosed
    if (!isNew && !this.#credential.isBefore(step)) return
    this.#credential.close(nowMs, { step: this.#steps, spread: this.#spread() })
    if (isNew) this.#parts.onCredentialOff?.()
  }

  #noteLimited({ step, at }: OneTurn, { verdict, retryAfterMs }: Fate, nowMs: number): void {
    const refused = { step, steps: this.#steps, retryAfterMs, spread: this.#spread() }
    if (verdict === 'rate_limited') at.rate.refuse(refused, nowMs)
    else if (this.#quota.refuse(refused, nowMs)) this.#parts.onQuotaSpent?.()
  }

  #reap(nowMs: number): void {
    for (let turn = this.#turns.first; turn !== undefined && turn.expiresMs <= nowMs; turn = this.#turns.first) {
      this.#lost++
      turn.end({ verdict: 'left' }, nowMs)
    }
  }

  #spread(): number {
    return 0.8 + 0.4 * this.#parts.chance()
  }
}

interface TurnRow {
  readonly step: number
  readonly accountId: number
  /** What is known of its model here. */
  readonly at: ModelHealth
  readonly tokens: number
  readonly taken: Taken | undefined
  readonly expiresMs: number
}

class OneTurn implements Turn {
  readonly #health: Health
  readonly step: number
  readonly accountId: number
  readonly at: ModelHealth
  readonly tokens: number
  readonly taken: Taken | undefined
  readonly expiresMs: number
  place: Place<OneTurn> | undefined
  isAnswered = false

  constructor(health: Health, { step, accountId, at, tokens, taken, expiresMs }: TurnRow) {
    this.#health = health
    this.step = step
    this.accountId = accountId
    this.at = at
    this.tokens = tokens
    this.taken = taken
    this.expiresMs = expiresMs
  }

  answered(heard: Pick<Fate, 'firstMs' | 'told'>, nowMs: number): void {
    if (this.isAnswered || this.place === undefined) return
    this.isAnswered = true
    this.#health.noteAnswer(this, heard, nowMs)
  }

  end(fate: Fate, nowMs: number): void {
    if (this.place === undefined) return
    if (fate.verdict === 'answered') this.answered({ firstMs: fate.firstMs }, nowMs)
    this.#health.noteEnd(this, fate, nowMs)
  }
}
