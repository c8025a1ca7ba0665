// The health of one channel: its active calls, the results of its last attempts, and until when it is blocked.
//
// It is kept in memory only, with a few numbers for each call. Every block ends by itself after a time; and a call that
// can go nowhere else may be sent to a blocked channel.

import { bounds } from '../../base/bounds.ts'
import type { MeterTake } from '../../base/collections/gcra.ts'
import type { ListNode } from '../../base/collections/linked-list.ts'
import { LinkedList } from '../../base/collections/linked-list.ts'
import type { AttemptVerdict } from '../attempts.ts'
import type { UpstreamLimit } from '../upstream-limits/headers.ts'
import { AccountBreakers } from './account-breakers.ts'
import type { BreakerFailure } from './breaker.ts'
import { Breaker } from './breaker.ts'
import { Circuit } from './circuit.ts'
import { FirstContentTimes } from './first-content-times.ts'
import type { ModelHealth } from './model-health.ts'
import { ModelHealths } from './model-health.ts'
import type { ChannelCaps } from './operator-caps.ts'
import { CapUsage } from './operator-caps.ts'
import { OtherAccounts } from './other-accounts.ts'
import { RateLimitBlock } from './rate-limit-block.ts'

/** The account and the model of a call. Some blocks apply to one account or to one model only. */
export interface CallSubject {
  readonly accountId: number
  readonly model: string
}

const anyCall: CallSubject = { accountId: 0, model: '' }

/** How an attempt ended. */
export interface AttemptResult {
  /** `left`: the caller stopped waiting, which says nothing about the channel. */
  readonly verdict: AttemptVerdict | 'left'
  /** From sending the request to the first content, or to the whole answer of a call without a stream. */
  readonly firstContentMs?: number | undefined
  /** How long the upstream asks to wait, limited to a plausible time. */
  readonly retryAfterMs?: number | undefined
  /** The limits in the upstream's headers. */
  readonly upstreamLimits?: readonly UpstreamLimit[] | undefined
  /** Whether the upstream said that it is overloaded. */
  readonly isOverloaded?: boolean | undefined
  /** The tokens that it used; undefined: unknown, so that the estimate stays. */
  readonly tokens?: number | undefined
}

/** One running attempt on a channel. A second end() has no effect. */
export interface ChannelUse {
  /** The first content has arrived. The channel works, although the answer may take minutes more. */
  noteAnswer(result: Pick<AttemptResult, 'firstContentMs' | 'upstreamLimits'>, nowMs: number): void
  end(result: AttemptResult, nowMs: number): void
}

/** Why a channel is blocked for a time. A call that can go nowhere else may still be sent to it. */
export type BlockReason = 'credential_bad' | 'broken' | 'rate_limited' | 'quota_spent' | 'upstream_limit'
/** Why a channel that is not blocked cannot take one more call. */
export type FullReason = 'busy' | 'concurrency_capped' | 'requests_capped' | 'tokens_capped'
export type HealthState = 'available' | BlockReason | FullReason

export interface HealthParts {
  readonly caps: ChannelCaps
  /** A random number from 0 to 1. */
  random(): number
  /** The provider refuses the credential. */
  onCredentialRefused?(): void
  /** The credential's quota or funds are used up. */
  onQuotaSpent?(): void
  /** The credential works again. */
  onRecovered?(): void
}

/** The health of a channel as operators see it. */
export interface HealthSnapshot {
  readonly state: HealthState
  readonly availableInMs: number
  readonly activeCalls: number
  /** The learned limit of concurrent calls; null while there is none. */
  readonly limit: number | null
  readonly firstMs: number | null
  readonly lastFailure: { readonly verdict: AttemptVerdict; readonly agoMs: number } | null
  /** Attempts that were never ended and were removed after their longest time. */
  readonly lost: number
}

const CREDENTIAL = { firstMs: 300_000, maxMs: 300_000 }
const QUOTA = { firstMs: 60_000, maxMs: bounds.channelPauseMsMax }
/** A single 403 may be caused by the request. So many in a row, without a success between them, blame the credential. */
const FORBIDDEN_IN_A_ROW = 5
/** The expected time of a channel whose first call is still running. */
const UNKNOWN_FIRST_MS = 1_000
/** With fewer active calls than these, slow answers are no sign of overload. */
const SLOW_CALLS_MIN = 8

export class Health {
  caps: ChannelCaps
  readonly #parts: HealthParts
  readonly #uses = new LinkedList<ActiveUse>()
  #breaker = new Breaker<ActiveUse>()
  #accountBreakers = new AccountBreakers<ActiveUse>()
  #credential = new Circuit<ActiveUse>(CREDENTIAL)
  #quota = new RateLimitBlock(QUOTA)
  readonly #models = new ModelHealths()
  readonly #capUsage = new CapUsage()
  readonly #firstTimes = new FirstContentTimes()
  /** Accounts that were answered. */
  readonly #answeredAccounts = new OtherAccounts()
  /** The number of attempts so far, which numbers them. */
  #steps = 0
  #refusalsInRow = 0
  /** The account of all refusals in the row; undefined when they are of several accounts. */
  #refusedAccount: number | undefined
  /** Attempts that have neither answered nor ended. */
  #unanswered = 0
  #lost = 0
  #lastFailure: { readonly verdict: AttemptVerdict; readonly atMs: number } | undefined

  constructor(parts: HealthParts) {
    this.caps = parts.caps
    this.#parts = parts
  }

  get activeCalls(): number {
    return this.#uses.size
  }

  /** Begins an attempt. */
  begin(tokens: number, nowMs: number, { accountId, model }: CallSubject = anyCall): ChannelUse {
    this.#removeExpired(nowMs)
    const taken = this.#capUsage.take(this.caps, tokens, nowMs)
    const modelHealth = this.#models.getOrCreate(model, nowMs)
    modelHealth.upstreamLimits.take(tokens, nowMs)
    modelHealth.activeCalls++
    const step = ++this.#steps
    const use = new ActiveUse(this, {
      step,
      accountId,
      modelHealth,
      tokens,
      taken,
      expiresMs: nowMs + bounds.channelUseMsMax,
    })
    use.node = this.#uses.add(use)
    this.#unanswered++
    this.#breaker.beginCall(use, nowMs)
    this.#accountBreakers.get(accountId)?.beginCall(use, nowMs)
    this.#credential.beginCall(use, nowMs)
    return use
  }

  stateFor(tokens: number, nowMs: number, subject?: CallSubject): HealthState {
    return this.blockedBy(tokens, nowMs, subject) ?? this.fullBy(tokens, nowMs, subject) ?? 'available'
  }

  /** Why the channel is blocked. `broken` (an open breaker) is returned only if there is no other reason. */
  blockedBy(tokens: number, nowMs: number, { accountId, model }: CallSubject = anyCall): BlockReason | undefined {
    if (!this.#credential.passes(nowMs)) return 'credential_bad'
    if (this.#quota.remainingMs(nowMs) > 0) return 'quota_spent'
    const byModel = this.#models.peek(model).blockedBy(tokens, nowMs)
    if (byModel !== undefined) return byModel
    const passes = this.#breaker.passes(nowMs) && (this.#accountBreakers.get(accountId)?.passes(nowMs) ?? true)
    return passes ? undefined : 'broken'
  }

  /** How long the breaker stays open: 0 while a probe is running, undefined when it lets calls pass. */
  breakerOpenMs(nowMs: number): number | undefined {
    return this.#breaker.passes(nowMs) ? undefined : this.#breaker.remainingMs(nowMs)
  }

  fullBy(tokens: number, nowMs: number, { model }: CallSubject = anyCall): FullReason | undefined {
    const { concurrency = Infinity } = this.caps
    const modelHealth = this.#models.peek(model)
    const limit = modelHealth.limit.limitAt(nowMs)
    if (this.#uses.size >= concurrency || modelHealth.activeCalls >= limit) {
      this.#removeExpired(nowMs)
      if (this.#uses.size >= concurrency) return 'concurrency_capped'
      if (modelHealth.activeCalls >= limit) return 'busy'
    }
    return this.#capUsage.cappedBy(this.caps, tokens, nowMs)
  }

  /** The time until nothing blocks the channel any more, as far as it is known. */
  availableInMs(tokens: number, nowMs: number, { accountId, model }: CallSubject = anyCall): number {
    const brokenMs = Math.max(
      this.#breaker.remainingMs(nowMs),
      this.#accountBreakers.get(accountId)?.remainingMs(nowMs) ?? 0,
    )
    const closedMs = Math.max(brokenMs, this.#credential.remainingMs(nowMs), this.#quota.remainingMs(nowMs))
    return Math.max(closedMs, this.#models.peek(model).availableInMs(tokens, nowMs))
  }

  /** The time until the caps admit this many tokens. */
  cappedMs(tokens: number, nowMs: number): number {
    return this.#capUsage.cappedMs(this.caps, tokens, nowMs)
  }

  /** The expected time to first content. While no call is waiting, the estimate falls with time, so that a call tries it. */
  expectedMs(nowMs: number): number {
    if (this.#unanswered === 0) return this.#firstTimes.optimisticMs(nowMs)
    return this.#firstTimes.lastMs ?? UNKNOWN_FIRST_MS
  }

  /** Ends every block; active calls still count. For a credential that was replaced or repaired. */
  reset(): void {
    this.#breaker = new Breaker()
    this.#accountBreakers = new AccountBreakers()
    this.#credential = new Circuit(CREDENTIAL)
    this.#quota = new RateLimitBlock(QUOTA)
    this.#refusalsInRow = 0
    this.#lastFailure = undefined
    for (const model of this.#models.all()) model.reset()
  }

  /** Sums up all models. A block of one model is shown if nothing blocks the whole channel. */
  snapshot(nowMs: number): HealthSnapshot {
    const last = this.#lastFailure
    let [state, availableInMs, limit] = [this.stateFor(0, nowMs), this.availableInMs(0, nowMs), Infinity]
    for (const model of this.#models.all()) {
      if (state === 'available') state = model.blockedBy(0, nowMs) ?? state
      availableInMs = Math.max(availableInMs, model.availableInMs(0, nowMs))
      limit = Math.min(limit, model.limit.limitAt(nowMs))
    }
    const { lastMs } = this.#firstTimes
    return {
      state,
      availableInMs,
      activeCalls: this.#uses.size,
      limit: limit === Infinity ? null : limit,
      firstMs: lastMs === undefined ? null : Math.round(lastMs),
      lastFailure: last === undefined ? null : { verdict: last.verdict, agoMs: nowMs - last.atMs },
      lost: this.#lost,
    }
  }

  /** Called once by each of its attempts. */
  noteAnswer(
    use: ActiveUse,
    { firstContentMs, upstreamLimits }: Pick<AttemptResult, 'firstContentMs' | 'upstreamLimits'>,
    nowMs: number,
  ): void {
    const { modelHealth, step, accountId } = use
    const { limit, activeCalls } = modelHealth
    if (upstreamLimits !== undefined) modelHealth.upstreamLimits.update(upstreamLimits, nowMs)
    this.#unanswered--
    if (firstContentMs !== undefined) {
      this.#firstTimes.note(firstContentMs, nowMs)
      const isSignal = activeCalls >= SLOW_CALLS_MIN && limit.isNewSignal(step)
      if (isSignal && this.#firstTimes.isSurging) limit.noteSlow(nowMs, { activeCalls, step: this.#steps })
    }
    limit.noteSuccess(activeCalls)
    this.#breaker.noteSuccess(nowMs)
    this.#accountBreakers.get(accountId)?.noteSuccess(nowMs)
    this.#answeredAccounts.note(accountId, nowMs)
    this.#refusalsInRow = 0
    this.#noteThere(use)
    modelHealth.rateLimit.noteSuccess(step)
    if (this.#quota.noteSuccess(step)) this.#parts.onRecovered?.()
    if (!this.#credential.isTrippedBefore(step)) return
    this.#credential.reset()
    this.#parts.onRecovered?.()
  }

  /** Called once by each of its attempts. */
  noteEnd(use: ActiveUse, result: AttemptResult, nowMs: number): void {
    const { verdict } = result
    const { modelHealth } = use
    const load = { activeCalls: modelHealth.activeCalls, step: this.#steps }
    this.#uses.remove(use.node!)
    use.node = undefined
    modelHealth.activeCalls--
    if (!use.isAnswered) this.#unanswered--
    const isAccountProbe = this.#accountBreakers.get(use.accountId)?.endCall(use) ?? false
    const isProbe = this.#breaker.endCall(use) || isAccountProbe
    this.#credential.endCall(use)
    const isUsed = verdict === 'answered' || verdict === 'left'
    const used = result.tokens ?? (isUsed ? use.tokens : 0)
    this.#capUsage.correct(use, used, nowMs)
    modelHealth.upstreamLimits.correct(used - use.tokens, nowMs)
    if (result.upstreamLimits !== undefined) modelHealth.upstreamLimits.update(result.upstreamLimits, nowMs)
    if (isUsed) return
    const isOverload = result.isOverloaded === true || verdict === 'rate_limited' || verdict === 'too_slow'
    if (isOverload && modelHealth.limit.isNewSignal(use.step)) modelHealth.limit.noteOverload(nowMs, load)
    if (verdict !== 'caller_at_fault') this.#lastFailure = { verdict, atMs: nowMs }
    if (verdict === 'broken' || verdict === 'too_slow') this.#noteBroken(use, isProbe, nowMs)
    else this.#noteThere(use)
    if (verdict === 'credential_bad' || verdict === 'forbidden') this.#noteRefused(use, verdict, nowMs)
    if (verdict === 'rate_limited' || verdict === 'quota_spent') this.#noteLimited(use, result, nowMs)
  }

  /** The upstream has answered, be it with an error. */
  #noteThere(use: ActiveUse): void {
    this.#breaker.noteReachable(use)
    this.#accountBreakers.get(use.accountId)?.noteReachable(use)
  }

  #noteBroken(use: ActiveUse, isProbe: boolean, nowMs: number): void {
    const answersOthers = (accountId: number): boolean => this.#answeredAccounts.wereSeen(accountId, nowMs)
    const failure: BreakerFailure = { isProbe, latestStep: this.#steps, jitter: this.#spread(), answersOthers }
    if (this.#accountBreakers.noteFailure(use, failure, nowMs)) return
    const culprit = this.#breaker.noteFailure(use, failure, nowMs)
    if (culprit === undefined || this.#accountBreakers.trip(culprit, failure, nowMs)) return
    this.#breaker.trip(failure, nowMs)
  }

  /** Blocks the credential, unless one account alone is refused while others are answered. */
  #noteRefused({ step, accountId }: ActiveUse, verdict: AttemptVerdict, nowMs: number): void {
    this.#refusedAccount = this.#refusalsInRow === 0 || this.#refusedAccount === accountId ? accountId : undefined
    this.#refusalsInRow++
    if (verdict === 'forbidden' && this.#refusalsInRow < FORBIDDEN_IN_A_ROW) return
    if (this.#refusedAccount !== undefined && this.#answeredAccounts.wereSeen(accountId, nowMs)) return
    const isNew = !this.#credential.isTripped
    if (!isNew && !this.#credential.isTrippedBefore(step)) return
    this.#credential.trip(nowMs, { step: this.#steps, spread: this.#spread() })
    if (isNew) this.#parts.onCredentialRefused?.()
  }

  #noteLimited({ step, modelHealth }: ActiveUse, { verdict, retryAfterMs }: AttemptResult, nowMs: number): void {
    const refusal = { step, latestStep: this.#steps, retryAfterMs, jitter: this.#spread() }
    if (verdict === 'rate_limited') modelHealth.rateLimit.noteRefusal(refusal, nowMs)
    else if (this.#quota.noteRefusal(refusal, nowMs)) this.#parts.onQuotaSpent?.()
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
    return 0.8 + 0.4 * this.#parts.random()
  }
}

interface UseFields {
  readonly step: number
  readonly accountId: number
  /** The health of its model. */
  readonly modelHealth: ModelHealth
  readonly tokens: number
  readonly taken: MeterTake | undefined
  readonly expiresMs: number
}

class ActiveUse implements ChannelUse {
  readonly #health: Health
  readonly step: number
  readonly accountId: number
  readonly modelHealth: ModelHealth
  readonly tokens: number
  readonly taken: MeterTake | undefined
  readonly expiresMs: number
  node: ListNode<ActiveUse> | undefined
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

  noteAnswer(result: Pick<AttemptResult, 'firstContentMs' | 'upstreamLimits'>, nowMs: number): void {
    if (this.isAnswered || this.node === undefined) return
    this.isAnswered = true
    this.#health.noteAnswer(this, result, nowMs)
  }

  end(result: AttemptResult, nowMs: number): void {
    if (this.node === undefined) return
    if (result.verdict === 'answered') this.noteAnswer({ firstContentMs: result.firstContentMs }, nowMs)
    this.#health.noteEnd(this, result, nowMs)
  }
}
