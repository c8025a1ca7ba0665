// The health of one channel: its active calls, the results of its last attempts, and until when it is blocked.
//
// It is kept in memory only, with a few numbers for each call. Every block ends by itself after a time; and a call that
// can go nowhere else may be sent to a blocked channel.

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

/** The account and the model of a call. Some blocks apply to one account or to one model only. */
export interface Asking {
  readonly accountId: number
  readonly model: string
}

const anyCall: Asking = { accountId: 0, model: '' }

/** How an attempt ended. */
export interface Fate {
  /** `left`: the caller stopped waiting, which says nothing about the channel. */
  readonly verdict: Verdict | 'left'
  /** From sending the request to the first content, or to the whole answer of a call without a stream. */
  readonly firstMs?: number | undefined
  /** How long the upstream asks to wait, limited to a plausible time. */
  readonly retryAfterMs?: number | undefined
  /** The limits in the upstream's headers. */
  readonly told?: readonly ToldLimit[] | undefined
  /** Whether the upstream said that it is overloaded. */
  readonly overloaded?: boolean | undefined
  /** The tokens that it used; undefined: unknown, so that the estimate stays. */
  readonly tokens?: number | undefined
}

/** One running attempt on a channel. A second end() has no effect. */
export interface Turn {
  /** The first content has arrived. The channel works, although the answer may take minutes more. */
  answered(result: Pick<Fate, 'firstMs' | 'told'>, nowMs: number): void
  end(result: Fate, nowMs: number): void
}

/** Why a channel is blocked for a time. A call that can go nowhere else may still be sent to it. */
export type Closed = 'credential_bad' | 'broken' | 'rate_limited' | 'quota_spent' | 'told_limit'
/** Why a channel that is not blocked cannot take one more call. */
export type Full = 'busy' | 'concurrency_capped' | 'requests_capped' | 'tokens_capped'
export type Standing = 'open' | Closed | Full

export interface HealthParts {
  readonly caps: Caps
  /** A random number from 0 to 1. */
  chance(): number
  /** The provider refuses the credential. */
  onCredentialOff?(): void
  /** The credential's quota or funds are used up. */
  onQuotaSpent?(): void
  /** The credential works again. */
  onWellAgain?(): void
}

/** The health of a channel as operators see it. */
export interface HealthSnapshot {
  readonly state: Standing
  readonly opensInMs: number
  readonly underWay: number
  /** The learned limit of concurrent calls; null while there is none. */
  readonly limit: number | null
  readonly firstMs: number | null
  readonly lastFailure: { readonly verdict: Verdict; readonly agoMs: number } | null
  /** Attempts that were never ended and were removed after their longest time. */
  readonly lost: number
}

const CREDENTIAL = { firstMs: 300_000, mostMs: 300_000 }
const QUOTA = { firstMs: 60_000, mostMs: bounds.channelClosedMsMax }
/** A single 403 may be caused by the request. So many in a row, without a success between them, blame the credential. */
const FORBIDDEN_IN_A_ROW = 5
/** The expected time of a channel whose first call is still running. */
const UNKNOWN_FIRST_MS = 1_000
/** With fewer active calls than these, slow answers are no sign of overload. */
const SLOW_CALLS_MIN = 8

export class Health {
  caps: Caps
  readonly #parts: HealthParts
  readonly #uses = new Ring<ActiveUse>()
  #breaker = new Breaker<ActiveUse>()
  #accountBreakers = new OwnBreakers<ActiveUse>()
  #credential = new Closing<ActiveUse>(CREDENTIAL)
  #quota = new Limited(QUOTA)
  readonly #models = new ModelHealths()
  readonly #capUsage = new Allowance()
  readonly #firstTimes = new FirstTimes()
  /** Accounts that were answered. */
  readonly #answeredAccounts = new Others()
  /** The number of attempts so far, which numbers them. */
  #steps = 0
  #refusalsInRow = 0
  /** The account of all refusals in the row; undefined when they are of several accounts. */
  #refusedAccount: number | undefined
  /** Attempts that have neither answered nor ended. */
  #unanswered = 0
  #lost = 0
  #lastFailure: { readonly verdict: Verdict; readonly atMs: number } | undefined

  constructor(parts: HealthParts) {
    this.caps = parts.caps
    this.#parts = parts
  }

  get underWay(): number {
    return this.#uses.size
  }

  /** Begins an attempt. */
  begin(tokens: number, nowMs: number, { accountId, model }: Asking = anyCall): Turn {
    this.#removeExpired(nowMs)
    const taken = this.#capUsage.take(this.caps, tokens, nowMs)
    const modelHealth = this.#models.of(model, nowMs)
    modelHealth.told.take(tokens, nowMs)
    modelHealth.underWay++
    const step = ++this.#steps
    const use = new ActiveUse(this, {
      step,
      accountId,
      modelHealth,
      tokens,
      taken,
      expiresMs: nowMs + bounds.turnMsMax,
    })
    use.node = this.#uses.add(use)
    this.#unanswered++
    this.#breaker.enter(use, nowMs)
    this.#accountBreakers.of(accountId)?.enter(use, nowMs)
    this.#credential.enter(use, nowMs)
    return use
  }

  standing(tokens: number, nowMs: number, subject?: Asking): Standing {
    return this.closedBy(tokens, nowMs, subject) ?? this.fullBy(tokens, nowMs, subject) ?? 'open'
  }

  /** Why the channel is blocked. `broken` (an open breaker) is returned only if there is no other reason. */
  closedBy(tokens: number, nowMs: number, { accountId, model }: Asking = anyCall): Closed | undefined {
    if (!this.#credential.passes(nowMs)) return 'credential_bad'
    if (this.#quota.leftMs(nowMs) > 0) return 'quota_spent'
    const byModel = this.#models.look(model).closedBy(tokens, nowMs)
    if (byModel !== undefined) return byModel
    const passes = this.#breaker.passes(nowMs) && (this.#accountBreakers.of(accountId)?.passes(nowMs) ?? true)
    return passes ? undefined : 'broken'
  }

  /** How long the breaker stays open: 0 while a probe is running, undefined when it lets calls pass. */
  brokenMs(nowMs: number): number | undefined {
    return this.#breaker.passes(nowMs) ? undefined : this.#breaker.leftMs(nowMs)
  }

  fullBy(tokens: number, nowMs: number, { model }: Asking = anyCall): Full | undefined {
    const { concurrency = Infinity } = this.caps
    const modelHealth = this.#models.look(model)
    const limit = modelHealth.limit.at(nowMs)
    if (this.#uses.size >= concurrency || modelHealth.underWay >= limit) {
      this.#removeExpired(nowMs)
      if (this.#uses.size >= concurrency) return 'concurrency_capped'
      if (modelHealth.underWay >= limit) return 'busy'
    }
    return this.#capUsage.cappedBy(this.caps, tokens, nowMs)
  }

  /** The time until nothing blocks the channel any more, as far as it is known. */
  opensInMs(tokens: number, nowMs: number, { accountId, model }: Asking = anyCall): number {
    const brokenMs = Math.max(this.#breaker.leftMs(nowMs), this.#accountBreakers.of(accountId)?.leftMs(nowMs) ?? 0)
    const closedMs = Math.max(brokenMs, this.#credential.leftMs(nowMs), this.#quota.leftMs(nowMs))
    return Math.max(closedMs, this.#models.look(model).opensInMs(tokens, nowMs))
  }

  /** The time until the caps admit this many tokens. */
  cappedMs(tokens: number, nowMs: number): number {
    return this.#capUsage.cappedMs(this.caps, tokens, nowMs)
  }

  /** The expected time to first content. While no call is waiting, the estimate falls with time, so that a call tries it. */
  expectedMs(nowMs: number): number {
    if (this.#unanswered === 0) return this.#firstTimes.hopedMs(nowMs)
    return this.#firstTimes.lastMs ?? UNKNOWN_FIRST_MS
  }

  /** Ends every block; active calls still count. For a credential that was replaced or repaired. */
  reset(): void {
    this.#breaker = new Breaker()
    this.#accountBreakers = new OwnBreakers()
    this.#credential = new Closing(CREDENTIAL)
    this.#quota = new Limited(QUOTA)
    this.#refusalsInRow = 0
    this.#lastFailure = undefined
    for (const model of this.#models.all()) model.reset()
  }

  /** Sums up all models. A block of one model is shown if nothing blocks the whole channel. */
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
      state,
      opensInMs,
      underWay: this.#uses.size,
      limit: limit === Infinity ? null : limit,
      firstMs: lastMs === undefined ? null : Math.round(lastMs),
      lastFailure: last === undefined ? null : { verdict: last.verdict, agoMs: nowMs - last.atMs },
      lost: this.#lost,
    }
  }

  /** Called once by each of its attempts. */
  noteAnswer(use: ActiveUse, { firstMs, told }: Pick<Fate, 'firstMs' | 'told'>, nowMs: number): void {
    const { modelHealth, step, accountId } = use
    const { limit, underWay } = modelHealth
    if (told !== undefined) modelHealth.told.tell(told, nowMs)
    this.#unanswered--
    if (firstMs !== undefined) {
      this.#firstTimes.note(firstMs, nowMs)
      const isSignal = underWay >= SLOW_CALLS_MIN && limit.tells(step)
      if (isSignal && this.#firstTimes.surges) limit.slow(nowMs, { underWay, step: this.#steps })
    }
    limit.well(underWay)
    this.#breaker.noteWell(nowMs)
    this.#accountBreakers.of(accountId)?.noteWell(nowMs)
    this.#answeredAccounts.note(accountId, nowMs)
    this.#refusalsInRow = 0
    this.#noteThere(use)
    modelHealth.rate.well(step)
    if (this.#quota.well(step)) this.#parts.onWellAgain?.()
    if (!this.#credential.isBefore(step)) return
    this.#credential.open()
    this.#parts.onWellAgain?.()
  }

  /** Called once by each of its attempts. */
  noteEnd(use: ActiveUse, result: Fate, nowMs: number): void {
    const { verdict } = result
    const { modelHealth } = use
    const load = { underWay: modelHealth.underWay, step: this.#steps }
    this.#uses.remove(use.node!)
    use.node = undefined
    modelHealth.underWay--
    if (!use.isAnswered) this.#unanswered--
    const isAccountProbe = this.#accountBreakers.of(use.accountId)?.leave(use) ?? false
    const isProbe = this.#breaker.leave(use) || isAccountProbe
    this.#credential.leave(use)
    const isUsed = verdict === 'answered' || verdict === 'left'
    const used = result.tokens ?? (isUsed ? use.tokens : 0)
    this.#capUsage.correct(use, used, nowMs)
    modelHealth.told.correct(used - use.tokens, nowMs)
    if (result.told !== undefined) modelHealth.told.tell(result.told, nowMs)
    if (isUsed) return
    const isOverload = result.overloaded === true || verdict === 'rate_limited' || verdict === 'too_slow'
    if (isOverload && modelHealth.limit.tells(use.step)) modelHealth.limit.overloaded(nowMs, load)
    if (verdict !== 'caller_at_fault') this.#lastFailure = { verdict, atMs: nowMs }
    if (verdict === 'broken' || verdict === 'too_slow') this.#noteBroken(use, isProbe, nowMs)
    else this.#noteThere(use)
    if (verdict === 'credential_bad' || verdict === 'forbidden') this.#noteRefused(use, verdict, nowMs)
    if (verdict === 'rate_limited' || verdict === 'quota_spent') this.#noteLimited(use, result, nowMs)
  }

  /** The upstream has answered, be it with an error. */
  #noteThere(use: ActiveUse): void {
    this.#breaker.noteThere(use)
    this.#accountBreakers.of(use.accountId)?.noteThere(use)
  }

  #noteBroken(use: ActiveUse, isProbe: boolean, nowMs: number): void {
    const answersOthers = (accountId: number): boolean => this.#answeredAccounts.areThere(accountId, nowMs)
    const failure: Failure = { isProbe, steps: this.#steps, spread: this.#spread(), answersOthers }
    if (this.#accountBreakers.noteFailed(use, failure, nowMs)) return
    const culprit = this.#breaker.noteFailed(use, failure, nowMs)
    if (culprit === undefined || this.#accountBreakers.open(culprit, failure, nowMs)) return
    this.#breaker.close(failure, nowMs)
  }

  /** Blocks the credential, unless one account alone is refused while others are answered. */
  #noteRefused({ step, accountId }: ActiveUse, verdict: Verdict, nowMs: number): void {
    this.#refusedAccount = this.#refusalsInRow === 0 || this.#refusedAccount === accountId ? accountId : undefined
    this.#refusalsInRow++
    if (verdict === 'forbidden' && this.#refusalsInRow < FORBIDDEN_IN_A_ROW) return
    if (this.#refusedAccount !== undefined && this.#answeredAccounts.areThere(accountId, nowMs)) return
    const isNew = !this.#credential.isClosed
    if (!isNew && !this.#credential.isBefore(step)) return
    this.#credential.close(nowMs, { step: this.#steps, spread: this.#spread() })
    if (isNew) this.#parts.onCredentialOff?.()
  }

  #noteLimited({ step, modelHealth }: ActiveUse, { verdict, retryAfterMs }: Fate, nowMs: number): void {
    const refusal = { step, steps: this.#steps, retryAfterMs, spread: this.#spread() }
    if (verdict === 'rate_limited') modelHealth.rate.refuse(refusal, nowMs)
    else if (this.#quota.refuse(refusal, nowMs)) this.#parts.onQuotaSpent?.()
  }

  /** Removes attempts that have lasted longer than any call may. */
  #removeExpired(nowMs: number): void {
    for (let use = this.#uses.first; use !== undefined && use.expiresMs <= nowMs; use = this.#uses.first) {
      this.#lost++
      use.end({ verdict: 'left' }, nowMs)
    }
  }

  /** A random factor about 1, so that many channels do not recover at the same moment. */
  #spread(): number {
    return 0.8 + 0.4 * this.#parts.chance()
  }
}

interface UseFields {
  readonly step: number
  readonly accountId: number
  /** The health of its model. */
  readonly modelHealth: ModelHealth
  readonly tokens: number
  readonly taken: Taken | undefined
  readonly expiresMs: number
}

class ActiveUse implements Turn {
  readonly #health: Health
  readonly step: number
  readonly accountId: number
  readonly modelHealth: ModelHealth
  readonly tokens: number
  readonly taken: Taken | undefined
  readonly expiresMs: number
  node: Place<ActiveUse> | undefined
  isAnswered = false

  constructor(health: Health, { step, accountId, modelHealth, tokens, taken, expiresMs }: UseFields) {
    this.#health = health
    this.step = step
    this.accountId = accountId
    this.modelHealth = modelHealth
    this.tokens = tokens
    this.taken = taken
    this.expiresMs = expiresMs
  }

  answered(result: Pick<Fate, 'firstMs' | 'told'>, nowMs: number): void {
    if (this.isAnswered || this.node === undefined) return
    this.isAnswered = true
    this.#health.noteAnswer(this, result, nowMs)
  }

  end(result: Fate, nowMs: number): void {
    if (this.node === undefined) return
    if (result.verdict === 'answered') this.answered({ firstMs: result.firstMs }, nowMs)
    this.#health.noteEnd(this, result, nowMs)
  }
}
