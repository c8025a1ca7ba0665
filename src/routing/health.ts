// What is known of one credential: how many calls it has, how its last ones went, and until when it is left alone.
//
// It lives in memory only, and each call costs it a few numbers. Whatever closes it opens by itself in time; and
// whoever chooses may ask it although it is closed, for a call that could go nowhere else.

import { bounds } from '../base/bounds.ts'
import type { Taken } from '../base/gcra.ts'
import type { Place } from '../base/ring.ts'
import { Ring } from '../base/ring.ts'
import { AdaptiveLimit } from './adaptive-limit.ts'
import type { Caps } from './allowance.ts'
import { Allowance } from './allowance.ts'
import type { Verdict } from './attempts.ts'
import { Closing } from './closing.ts'
import { FirstTimes } from './first-times.ts'
import { Recent } from './recent.ts'
import type { ToldLimit } from './told-limits.ts'
import { Until } from './until.ts'

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

const BROKEN = { firstMs: 1_000, mostMs: 60_000 }
const CREDENTIAL = { firstMs: 300_000, mostMs: 300_000 }
const IN_A_ROW = 5
/** One may be provoked by what was asked for; with nothing good in between it is the credential. */
const FORBIDDEN_IN_A_ROW = 5
const OF_LAST = 20
const PERCENT = 50
const RATE_FIRST_MS = 1_000
const RATE_MOST_MS = 60_000
const QUOTA_FIRST_MS = 60_000
/** Until a channel has shown how long it takes, and while the first call is on its way to find out. */
const UNKNOWN_FIRST_MS = 1_000
/** Fewer calls than these are not too many, however slow they are. */
const SLOW_FROM = 8

export class Health {
  caps: Caps
  readonly #parts: HealthParts
  readonly #turns = new Ring<OneTurn>()
  readonly #broken = new Closing<OneTurn>(BROKEN)
  readonly #credential = new Closing<OneTurn>(CREDENTIAL)
  readonly #limit = new AdaptiveLimit()
  readonly #allowance = new Allowance()
  readonly #firstTimes = new FirstTimes()
  readonly #recent = new Recent()
  #steps = 0
  #failedInRow = 0
  #forbiddenInRow = 0
  /** Turns that have neither answered nor ended. */
  #unanswered = 0
  #lost = 0
  readonly #limited = new Until()
  #limitedSinceStep = 0
  #limitedTimes = 0
  #limitedBy: 'rate_limited' | 'quota_spent' = 'rate_limited'
  #lastFailure: { readonly verdict: Verdict; readonly atMs: number } | undefined

  constructor(parts: HealthParts) {
    this.caps = parts.caps
    this.#parts = parts
  }

  get underWay(): number {
    return this.#turns.size
  }

  begin(tokens: number, nowMs: number): Turn {
    this.#reap(nowMs)
    const taken = this.#allowance.take(this.caps, tokens, nowMs)
    const turn = new OneTurn(this, { step: ++this.#steps, tokens, taken, expiresMs: nowMs + bounds.turnMsMax })
    turn.place = this.#turns.add(turn)
    this.#unanswered++
    this.#broken.enter(turn, nowMs)
    this.#credential.enter(turn, nowMs)
    return turn
  }

  standing(tokens: number, nowMs: number): Standing {
    return this.closedBy(tokens, nowMs) ?? this.fullBy(tokens, nowMs) ?? 'open'
  }

  /** `broken` comes last: when it is said, nothing else closes it. */
  closedBy(tokens: number, nowMs: number): Closed | undefined {
    if (!this.#credential.passes(nowMs)) return 'credential_bad'
    if (this.#limited.leftMs(nowMs) > 0) return this.#limitedBy
    if (this.#allowance.toldWaitMs(tokens, nowMs) > 0) return 'told_limit'
    return this.#broken.passes(nowMs) ? undefined : 'broken'
  }

  /** How long its breaker still holds it closed: 0 while one call tries it, undefined when it does not. */
  brokenMs(nowMs: number): number | undefined {
    return this.#broken.passes(nowMs) ? undefined : this.#broken.leftMs(nowMs)
  }

  fullBy(tokens: number, nowMs: number): Full | undefined {
    const underWay = this.#turns.size
    const { concurrency = Infinity } = this.caps
    const limit = Math.min(concurrency, this.#limit.at(nowMs))
    if (underWay >= limit) {
      this.#reap(nowMs)
      if (this.#turns.size >= limit) return underWay >= concurrency ? 'concurrency_capped' : 'busy'
    }
    return this.#allowance.cappedBy(this.caps, tokens, nowMs)
  }

  /** Until nothing closes it any more, as far as that is known. */
  opensInMs(tokens: number, nowMs: number): number {
    const closedMs = Math.max(this.#broken.leftMs(nowMs), this.#credential.leftMs(nowMs))
    return Math.max(closedMs, this.#limited.leftMs(nowMs), this.#allowance.toldWaitMs(tokens, nowMs))
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

  snapshot(nowMs: number): HealthSnapshot {
    const last = this.#lastFailure
    const limit = this.#limit.at(nowMs)
    return {
      state: this.standing(0, nowMs),
      opensInMs: this.opensInMs(0, nowMs),
      underWay: this.#turns.size,
      limit: limit === Infinity ? null : limit,
      firstMs: this.#firstTimes.lastMs ?? null,
      lastFailure: last === undefined ? null : { verdict: last.verdict, agoMs: nowMs - last.atMs },
      lost: this.#lost,
    }
  }

  /** Only for its own turns, once each. */
  noteAnswer(turn: OneTurn, { firstMs, told }: Pick<Fate, 'firstMs' | 'told'>, nowMs: number): void {
    const underWay = this.#turns.size
    if (told !== undefined) this.#allowance.tell(told, nowMs)
    this.#unanswered--
    if (firstMs !== undefined) {
      this.#firstTimes.note(firstMs, nowMs)
      const tells = underWay >= SLOW_FROM && this.#limit.tells(turn.step)
      if (tells && this.#firstTimes.surges) this.#limit.slow(nowMs, { underWay, step: this.#steps })
    }
    this.#limit.well(underWay)
    this.#recent.note(false, nowMs)
    this.#forbiddenInRow = 0
    this.#noteThere(turn)
    if (this.#credential.isBefore(turn.step)) {
      this.#credential.open()
      this.#parts.onWellAgain?.()
    }
    if (this.#limitedTimes === 0 || turn.step <= this.#limitedSinceStep) return
    if (this.#limitedBy === 'quota_spent') this.#parts.onWellAgain?.()
    this.#limitedTimes = 0
    this.#limited.clear()
  }

  /** Only for its own turns, once each. */
  noteEnd(turn: OneTurn, fate: Fate, nowMs: number): void {
    const { verdict } = fate
    const load = { underWay: this.#turns.size, step: this.#steps }
    this.#turns.remove(turn.place!)
    turn.place = undefined
    if (!turn.isAnswered) this.#unanswered--
    const isProbe = this.#broken.leave(turn)
    this.#credential.leave(turn)
    const isUsed = verdict === 'answered' || verdict === 'left'
    this.#allowance.correct(turn, fate.tokens ?? (isUsed ? turn.tokens : 0), nowMs)
    if (fate.told !== undefined) this.#allowance.tell(fate.told, nowMs)
    if (isUsed) return
    const isTooMuch = fate.overloaded === true || verdict === 'rate_limited' || verdict === 'too_slow'
    if (isTooMuch && this.#limit.tells(turn.step)) this.#limit.overloaded(nowMs, load)
    if (verdict !== 'caller_at_fault') this.#lastFailure = { verdict, atMs: nowMs }
    if (verdict === 'broken' || verdict === 'too_slow') this.#noteBroken(isProbe, nowMs)
    else this.#noteThere(turn)
    const isForbidden = verdict === 'forbidden' && ++this.#forbiddenInRow >= FORBIDDEN_IN_A_ROW
    if (verdict === 'credential_bad' || isForbidden) this.#noteCredential(turn, nowMs)
    if (verdict === 'rate_limited' || verdict === 'quota_spent') this.#noteLimited(turn, { ...fate, verdict }, nowMs)
  }

  /** It answers, whatever it says. */
  #noteThere({ step }: OneTurn): void {
    if (!this.#broken.isClosed) this.#failedInRow = 0
    if (!this.#broken.isBefore(step)) return
    this.#broken.open()
    this.#failedInRow = 0
    this.#recent.clear()
  }

  #noteBroken(isProbe: boolean, nowMs: number): void {
    this.#recent.note(true, nowMs)
    this.#failedInRow++
    const mark = { step: this.#steps, spread: this.#spread() }
    if (this.#broken.isClosed) {
      if (isProbe) this.#broken.close(nowMs, mark)
      else this.#broken.extend(nowMs, mark.spread)
      return
    }
    const bad = this.#recent.bad(nowMs)
    const all = bad + this.#recent.good(nowMs)
    const isMost = all >= OF_LAST && bad * 100 >= all * PERCENT
    if (this.#failedInRow >= IN_A_ROW || isMost) this.#broken.close(nowMs, mark)
  }

  #noteCredential({ step }: OneTurn, nowMs: number): void {
    const isNew = !this.#credential.isClosed
    if (!isNew && !this.#credential.isBefore(step)) return
    this.#credential.close(nowMs, { step: this.#steps, spread: this.#spread() })
    if (isNew) this.#parts.onCredentialOff?.()
  }

  #noteLimited({ step }: OneTurn, { verdict, retryAfterMs }: LimitedFate, nowMs: number): void {
    const isQuota = verdict === 'quota_spent'
    const isFirst = this.#limitedTimes === 0 || this.#limitedBy !== verdict
    this.#limitedBy = verdict
    // Many that were under way together are refused together: that is one refusal.
    if (isFirst || step > this.#limitedSinceStep) {
      this.#limitedTimes = isFirst ? 1 : this.#limitedTimes + 1
      this.#limitedSinceStep = this.#steps
    }
    const [firstMs, mostMs] = isQuota ? [QUOTA_FIRST_MS, bounds.channelClosedMsMax] : [RATE_FIRST_MS, RATE_MOST_MS]
    const doubledMs = Math.min(firstMs * 2 ** (this.#limitedTimes - 1), mostMs) * this.#spread()
    this.#limited.extend(Math.min(retryAfterMs ?? doubledMs, bounds.channelClosedMsMax), nowMs)
    if (isQuota && isFirst) this.#parts.onQuotaSpent?.()
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

type LimitedFate = Fate & { readonly verdict: 'rate_limited' | 'quota_spent' }

interface TurnRow {
  readonly step: number
  readonly tokens: number
  readonly taken: Taken | undefined
  readonly expiresMs: number
}

class OneTurn implements Turn {
  readonly #health: Health
  readonly step: number
  readonly tokens: number
  readonly taken: Taken | undefined
  readonly expiresMs: number
  place: Place<OneTurn> | undefined
  isAnswered = false

  constructor(health: Health, { step, tokens, taken, expiresMs }: TurnRow) {
    this.#health = health
    this.step = step
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
