// Admits or refuses calls under overload, before their bodies are read. Three things decide: the overload level
// (memory, event loop, ledger), the number of active calls of all accounts and of this one, and whether the processor
// keeps up.
//
// Each admitted call has a lease, which is returned when the call is over. Any account may take any free slot, except
// the last eighth: that is for accounts with less than an equal share of all active calls.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { Hint } from '../base/hints.ts'
import { hintOf } from '../base/hints.ts'
import type { OverloadLevel, OverloadState } from './overload-meter.ts'
import { MEMORY_SHORT_SHARE, OverloadMeter } from './overload-meter.ts'
import type { PacedAccount } from './pace.ts'
import { Pace } from './pace.ts'

export interface GateParts {
  /** Active calls of all accounts. */
  readonly callsMax: number
  nowMs(): number
  /** How late a timer is that was due at `dueMs`. */
  timerDelayMs(dueMs: number): number
  /** The share of the available memory that this process uses, from 0 to 1. */
  memoryShare(): number
  /** How long the oldest operation has waited for the ledger. */
  ledgerWaitMs(): number
  onLevel(state: OverloadState): void
  /** Frees memory that can be spared. Called again and again while memory is short. */
  freeMemory(): void
  /** Closes connections that may be using memory. Cheap, and called more often than `freeMemory`. */
  shedConnections?(): void
  /** Whether connections are open that use memory also without calls. */
  hasConnections?(): boolean
}

export interface GateVisitor {
  readonly accountId: number
  readonly tier: string
}

const TICK_MS = 20
const MEASURE_MS = 250
/** A wait for the ledger counts this many times less than the same delay of the event loop. */
const LEDGER_PATIENCE = 3
const FREE_MEMORY_MS = 5_000
const SWEEP_MS = 1_000
const SWEPT_MAX = 1_000
/** Idle accounts are remembered for a while, because forgetting and adding them again costs more. */
const IDLE_SECONDS = 10
/** This many calls are served within some tens of milliseconds, so with fewer active calls none is refused for pace. */
const UNPACED_CALLS = 128
/** One account may always have this many active calls, however many accounts there are. */
const SHARE_MIN = 8
/** Above this part of the slots, only accounts with less than their share are admitted, and not the free tier. */
const LAST_PART = 7 / 8
const FREE_TIER = 'free'

/** Refused callers get different waits, so that they do not all return at the same time. */
const RETRY_AFTERS_MS = [1_000, 1_250, 1_500, 1_750, 2_000, 2_250, 2_500, 2_750]

export type GateRefusalReason = 'shut' | 'full' | 'free_tier' | 'share' | 'pace'

export class Gate {
  readonly #parts: GateParts
  readonly #pressure = new OverloadMeter()
  readonly #pace = new Pace()
  readonly #shares = new Map<number, Share>()
  readonly #refusals = buildRefusals()
  readonly #turnedAway: Record<GateRefusalReason, number> = { shut: 0, full: 0, free_tier: 0, share: 0, pace: 0 }
  /** The most active calls while the level is 2 or higher: as many as there were when that began. */
  #overloadCallsMax = Number.POSITIVE_INFINITY
  #activeCalls = 0
  /** Accounts with active calls. */
  #activeAccounts = 0
  /** Accounts that sent a call in this second, and in the second before. */
  #accountsThisSecond = 0
  #accountsLastSecond = 0
  #second = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #dueMs = 0
  #measuredMs = 0
  #lateMs = 0
  #isMemoryShort = false
  /** The level that was reported last. */
  #reportedLevel: OverloadLevel = 0
  #freedMemoryMs = Number.NEGATIVE_INFINITY
  #sweptMs = 0
  #sweeper: Iterator<Share> | undefined

  constructor(parts: GateParts) {
    this.#parts = parts
  }

  get level(): OverloadLevel {
    return this.isClosed ? 3 : this.#pressure.level
  }

  /** No call is admitted, of any account. */
  get isClosed(): boolean {
    return this.isOutOfMemory || this.#parts.ledgerWaitMs() > bounds.ledgerQueueMsMax
  }

  /** The pressure reaches level 3 by memory alone. */
  get isOutOfMemory(): boolean {
    return this.#pressure.level === 3
  }

  get activeCalls(): number {
    return this.#activeCalls
  }

  /** How many calls were refused so far, by reason. */
  get refusalCounts(): Readonly<Record<GateRefusalReason, number>> {
    return this.#turnedAway
  }

  /** Calls a second that are admitted at the moment; undefined if there is no such limit. */
  get admittedPerSecond(): number | undefined {
    return this.#pace.perSecond
  }

  /** The 99th percentile of the event loop's delay. It is not measured while there are no calls. */
  get loopDelayMs(): number {
    return this.#timer === undefined ? 0 : this.#lateMs
  }

  /** Some calls are refused at the moment. */
  get isSelective(): boolean {
    return (
      this.level > 1 || this.admittedPerSecond !== undefined || this.#activeCalls >= this.#parts.callsMax * LAST_PART
    )
  }

  /** Measures from now on, also without calls: a connection was opened that uses memory. */
  measure(): void {
    if (this.#timer === undefined) this.#startTimer()
  }

  /** Admits a call, or returns the reason against it. */
  admit({ accountId, tier }: GateVisitor): GateLease | Refusal {
    this.measure()
    const share = this.#shareOf(accountId)
    const reason = this.#reasonAgainst(share, tier)
    if (reason !== undefined) return this.refuse(reason)
    this.#pace.start(share)
    if (share.activeCalls++ === 0) this.#activeAccounts++
    this.#activeCalls++
    return new GateLease(this, share)
  }

  /** Why a call of this account would be refused at the moment; undefined if it would be admitted. */
  refuseUnlessAdmissible({ accountId, tier }: GateVisitor): Refusal | undefined {
    const reason = this.#reasonAgainst(this.#shareOf(accountId), tier)
    return reason && this.refuse(reason)
  }

  refuse(reason: GateRefusalReason): Refusal {
    this.#turnedAway[reason]++
    const refusals = this.#refusals[reason]
    return refusals[this.#turnedAway[reason] % refusals.length]!
  }

  /** Called by a lease, once. */
  release(share: Share): void {
    this.#pace.end()
    this.#activeCalls--
    if (--share.activeCalls === 0) this.#activeAccounts--
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #reasonAgainst(share: Share, tier: string): GateRefusalReason | undefined {
    const { level } = this
    const { callsMax } = this.#parts
    if (level === 3) return 'shut'
    if (this.#activeCalls >= callsMax) return 'full'
    const isLastPart = this.#activeCalls >= callsMax * LAST_PART
    if (tier === FREE_TIER && (isLastPart || (level === 2 && this.#canRefusalsHelp))) return 'free_tier'
    if (isLastPart || level === 2) {
      const accounts = this.#activeAccounts + (share.activeCalls === 0 ? 1 : 0)
      // Counts one account more than there are, so that the next account finds a free slot.
      const equalShare = Math.min(callsMax / (accounts + 1), this.#overloadCallsMax / accounts)
      if (share.activeCalls >= Math.max(SHARE_MIN, Math.floor(equalShare))) return 'share'
    }
    // With so few active calls a late event loop is not caused by a queue of calls.
    if (this.#activeCalls < UNPACED_CALLS) return undefined
    const accounts = Math.max(this.#accountsThisSecond, this.#accountsLastSecond)
    return this.#pace.mayStart(share, accounts) ? undefined : 'pace'
  }

  /** With hardly any active call, something else makes the event loop or the ledger late. */
  get #canRefusalsHelp(): boolean {
    return this.#activeCalls >= SHARE_MIN || this.#isMemoryShort
  }

  #shareOf(accountId: number): Share {
    let share = this.#shares.get(accountId)
    if (share === undefined) {
      share = { accountId, activeCalls: 0, second: -1, tick: 0, started: 0 }
      this.#shares.set(accountId, share)
    }
    if (share.second !== this.#second) {
      share.second = this.#second
      this.#accountsThisSecond++
    }
    return share
  }

  #startTimer(): void {
    const nowMs = this.#parts.nowMs()
    this.#measuredMs = nowMs
    this.#scheduleTick(nowMs)
  }

  #scheduleTick(nowMs: number): void {
    this.#dueMs = nowMs + TICK_MS
    this.#timer = setTimeout(() => this.#tick(), TICK_MS)
  }

  #tick(): void {
    const nowMs = this.#parts.nowMs()
    const lateMs = Math.max(0, this.#parts.timerDelayMs(this.#dueMs))
    this.#pressure.addDelay(lateMs, nowMs)
    // A wait for the ledger delays calls as well, but there always is one, and it is longer on a slow disk.
    this.#pace.beginTick(Math.max(lateMs, this.#parts.ledgerWaitMs() / LEDGER_PATIENCE), nowMs)
    if (nowMs - this.#measuredMs >= MEASURE_MS) this.#measure(nowMs)
    if (nowMs - this.#sweptMs >= SWEEP_MS) this.#sweep(nowMs)
    const isCalm = this.#activeCalls === 0 && this.level === 0 && this.admittedPerSecond === undefined
    if (isCalm && this.#shares.size === 0 && !this.#parts.hasConnections?.()) this.#timer = undefined
    else this.#scheduleTick(nowMs)
  }

  #measure(nowMs: number): void {
    this.#measuredMs = nowMs
    const { memoryShare, ledgerWaitMs } = this.#parts
    const readings = this.#pressure.measure({ memory: memoryShare(), ledgerMs: ledgerWaitMs() }, nowMs)
    const state = { ...readings, level: this.level }
    this.#lateMs = state.lateMs
    this.#isMemoryShort = state.memory >= MEMORY_SHORT_SHARE
    if (this.#isMemoryShort && nowMs - this.#freedMemoryMs >= FREE_MEMORY_MS) {
      this.#freedMemoryMs = nowMs
      this.#parts.freeMemory()
    } else if (this.#isMemoryShort) {
      this.#parts.shedConnections?.()
    }
    const levelBefore = this.#reportedLevel
    if (state.level === levelBefore) return
    this.#reportedLevel = state.level
    if (state.level < 2) this.#overloadCallsMax = Number.POSITIVE_INFINITY
    else if (levelBefore < 2) this.#overloadCallsMax = this.#activeCalls
    this.#parts.onLevel(state)
  }

  /** Once a second: forgets idle accounts. */
  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs
    this.#second++
    this.#accountsLastSecond = this.#accountsThisSecond
    this.#accountsThisSecond = 0
    for (let step = 0; step < SWEPT_MAX; step++) {
      this.#sweeper ??= this.#shares.values()
      const { value: share, done } = this.#sweeper.next()
      if (done) return void (this.#sweeper = undefined)
      if (share.activeCalls === 0 && share.second < this.#second - IDLE_SECONDS) this.#shares.delete(share.accountId)
    }
  }
}

/** The state of one account. */
interface Share extends PacedAccount {
  readonly accountId: number
  activeCalls: number
  /** The second of its last call. */
  second: number
}

/** The slot of one call. Only the first release() has an effect. */
export class GateLease {
  readonly #gate: Gate
  #share: Share | undefined

  constructor(gate: Gate, share: Share) {
    this.#gate = gate
    this.#share = share
  }

  release(): void {
    const share = this.#share
    if (share === undefined) return
    this.#share = undefined
    this.#gate.release(share)
  }
}

/** All refusals are built once, because refusing must be cheap. */
function buildRefusals(): Readonly<Record<GateRefusalReason, readonly Refusal[]>> {
  const build = (reason: GateRefusalReason, hint?: Hint): readonly Refusal[] =>
    RETRY_AFTERS_MS.map(retryAfterMs => new Refusal('overloaded', reason, { retryAfterMs, ...(hint && { hint }) }))
  return {
    shut: build('shut'),
    full: build('full'),
    free_tier: build('free_tier', hintOf('call_free_tier')),
    share: build('share', hintOf('call_share')),
    pace: build('pace'),
  }
}
