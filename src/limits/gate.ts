// Who is let in when there is more to do than can be done: before a call's body is read, and before anything is done
// for it. Three things decide: how hard pressed the gateway is, how many calls are under way and whose they are, and
// whether the processor keeps up.
//
// Each call that is let in has a lease, which is its account's and is given back when the call is over. Whoever comes
// may have whatever is free, but for the last eighth: that is for accounts that have less than an equal share of all.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { Paced } from './pace.ts'
import { Pace } from './pace.ts'
import type { Level, Pressed } from './pressure.ts'
import { Pressure, SHORT_OF_MEMORY } from './pressure.ts'

export interface GateParts {
  /** Calls under way at once, of all accounts. */
  readonly callsMax: number
  nowMs(): number
  /** How late a timer is that was due then. */
  lateMs(dueMs: number): number
  /** What this process has taken of the memory there is for it, from 0 to 1. */
  memory(): number
  /** How long the oldest operation has waited for the ledger. */
  ledgerMs(): number
  onLevel(pressed: Pressed): void
  /** Gives back memory that can be done without; again and again while it is short. */
  relieve(): void
}

export interface Visitor {
  readonly accountId: number
  readonly tier: string
}

const TICK_MS = 20
const LOOK_MS = 250
const LEDGER_PATIENCE = 3
const RELIEVE_MS = 5_000
const SWEEP_MS = 1_000
const SWEPT_MAX = 1_000
/** An account is remembered for a while: to come and go costs more than to stay. */
const IDLE_SECONDS = 10
/** So many calls are served in some tens of milliseconds: whoever comes then had better wait. */
const UNPACED_CALLS = 128
/** However many accounts there are, one may have this many calls under way. */
const SHARE_MIN = 8
/** The last eighth is for accounts that have less than others, and not for the free tier. */
const LAST_PART = 7 / 8
const FREE_TIER = 'free'

/** Not all are told to come again at the same time. */
const WAITS_MS = [1_000, 1_250, 1_500, 1_750, 2_000, 2_250, 2_500, 2_750]

export type TurnedAway = 'shut' | 'full' | 'free_tier' | 'share' | 'pace'

export class Gate {
  readonly #parts: GateParts
  readonly #pressure = new Pressure()
  readonly #pace = new Pace()
  readonly #shares = new Map<number, Share>()
  readonly #refusals = buildRefusals()
  readonly #turnedAway: Record<TurnedAway, number> = { shut: 0, full: 0, free_tier: 0, share: 0, pace: 0 }
  /** What may be under way as long as it is hard pressed: what was when that began. */
  #pressedCalls = Number.POSITIVE_INFINITY
  #underWay = 0
  /** Accounts with calls under way. */
  #active = 0
  /** Accounts that have asked in this second, and in the one before. */
  #asking = 0
  #askedBefore = 0
  #second = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #dueMs = 0
  #lookedMs = 0
  #lateMs = 0
  /** The level when it was last looked at. */
  #told: Level = 0
  #relievedMs = Number.NEGATIVE_INFINITY
  #sweptMs = 0
  #sweeper: Iterator<Share> | undefined

  constructor(parts: GateParts) {
    this.#parts = parts
  }

  get level(): Level {
    return this.isShut ? 3 : this.#pressure.level
  }

  /** Nobody is let in, whoever it is. */
  get isShut(): boolean {
    return this.#pressure.level === 3 || this.#parts.ledgerMs() > bounds.ledgerQueueMsMax
  }

  get underWay(): number {
    return this.#underWay
  }

  /** How many were turned away so far, and why. */
  get turnedAway(): Readonly<Record<TurnedAway, number>> {
    return this.#turnedAway
  }

  /** Calls a second that are begun at the moment; undefined when all are. */
  get perSecond(): number | undefined {
    return this.#pace.perSecond
  }

  /** How late the event loop is in all but one of a hundred looks; it is not looked at while there is no call. */
  get lateMs(): number {
    return this.#timer === undefined ? 0 : this.#lateMs
  }

  /** Not everybody is let in. */
  get isPicky(): boolean {
    return this.level > 1 || this.perSecond !== undefined || this.#underWay >= this.#parts.callsMax * LAST_PART
  }

  /** A place for one call, or why there is none. */
  enter({ accountId, tier }: Visitor): GateLease | Refusal {
    if (this.#timer === undefined) this.#wake()
    const share = this.#shareOf(accountId)
    const reason = this.#reasonAgainst(share, tier)
    if (reason !== undefined) return this.refuse(reason)
    this.#pace.begin(share)
    if (share.underWay++ === 0) this.#active++
    this.#underWay++
    return new GateLease(this, share)
  }

  /** Why a call of this account would find no place at the moment. */
  turnsAway({ accountId, tier }: Visitor): Refusal | undefined {
    const reason = this.#reasonAgainst(this.#shareOf(accountId), tier)
    return reason && this.refuse(reason)
  }

  refuse(reason: TurnedAway): Refusal {
    this.#turnedAway[reason]++
    const refusals = this.#refusals[reason]
    return refusals[this.#turnedAway[reason] % refusals.length]!
  }

  /** Only by a lease, once. */
  leave(share: Share): void {
    this.#pace.end()
    this.#underWay--
    if (--share.underWay === 0) this.#active--
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #reasonAgainst(share: Share, tier: string): TurnedAway | undefined {
    const { level } = this
    const { callsMax } = this.#parts
    if (level === 3) return 'shut'
    if (this.#underWay >= callsMax) return 'full'
    const isLast = this.#underWay >= callsMax * LAST_PART
    if (tier === FREE_TIER && (isLast || level === 2)) return 'free_tier'
    if (isLast || level === 2) {
      const accounts = this.#active + (share.underWay === 0 ? 1 : 0)
      // As if there were one more, so that whoever comes next finds a place.
      const equal = Math.min(callsMax / (accounts + 1), this.#pressedCalls / accounts)
      if (share.underWay >= Math.max(SHARE_MIN, Math.floor(equal))) return 'share'
    }
    // With no more than these under way there is no queue of ours, however late the machine lets us be.
    if (this.#underWay < UNPACED_CALLS) return undefined
    return this.#pace.mayBegin(share, Math.max(this.#asking, this.#askedBefore)) ? undefined : 'pace'
  }

  #shareOf(accountId: number): Share {
    let share = this.#shares.get(accountId)
    if (share === undefined) {
      share = { accountId, underWay: 0, second: -1, moment: 0, had: 0 }
      this.#shares.set(accountId, share)
    }
    if (share.second !== this.#second) {
      share.second = this.#second
      this.#asking++
    }
    return share
  }

  #wake(): void {
    const nowMs = this.#parts.nowMs()
    this.#lookedMs = nowMs
    this.#await(nowMs)
  }

  #await(nowMs: number): void {
    this.#dueMs = nowMs + TICK_MS
    this.#timer = setTimeout(() => this.#tick(), TICK_MS)
  }

  #tick(): void {
    const nowMs = this.#parts.nowMs()
    const lateMs = Math.max(0, this.#parts.lateMs(this.#dueMs))
    this.#pressure.noteLate(lateMs, nowMs)
    // The ledger's queue is one, too; only, it is always there, and longer on a slow disk.
    this.#pace.look(Math.max(lateMs, this.#parts.ledgerMs() / LEDGER_PATIENCE), nowMs)
    if (nowMs - this.#lookedMs >= LOOK_MS) this.#look(nowMs)
    if (nowMs - this.#sweptMs >= SWEEP_MS) this.#sweep(nowMs)
    const isIdle = this.#underWay === 0 && this.level === 0 && this.perSecond === undefined && this.#shares.size === 0
    if (isIdle) this.#timer = undefined
    else this.#await(nowMs)
  }

  #look(nowMs: number): void {
    this.#lookedMs = nowMs
    const { memory, ledgerMs } = this.#parts
    const seen = this.#pressure.look({ memory: memory(), ledgerMs: ledgerMs() }, nowMs)
    const pressed = { ...seen, level: this.level }
    this.#lateMs = pressed.lateMs
    if (pressed.memory >= SHORT_OF_MEMORY && nowMs - this.#relievedMs >= RELIEVE_MS) {
      this.#relievedMs = nowMs
      this.#parts.relieve()
    }
    const before = this.#told
    if (pressed.level === before) return
    this.#told = pressed.level
    if (pressed.level < 2) this.#pressedCalls = Number.POSITIVE_INFINITY
    else if (before < 2) this.#pressedCalls = this.#underWay
    this.#parts.onLevel(pressed)
  }

  /** Once a second: forgets accounts that have not been here for a while. */
  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs
    this.#second++
    this.#askedBefore = this.#asking
    this.#asking = 0
    for (let step = 0; step < SWEPT_MAX; step++) {
      this.#sweeper ??= this.#shares.values()
      const { value: share, done } = this.#sweeper.next()
      if (done) return void (this.#sweeper = undefined)
      if (share.underWay === 0 && share.second < this.#second - IDLE_SECONDS) this.#shares.delete(share.accountId)
    }
  }
}

/** What is known of one account. */
interface Share extends Paced {
  readonly accountId: number
  underWay: number
  /** When it last asked. */
  second: number
}

/** One call's place. Given back once, however often that is said. */
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
    this.#gate.leave(share)
  }
}

/** Made once: a refusal must cost next to nothing. */
function buildRefusals(): Readonly<Record<TurnedAway, readonly Refusal[]>> {
  const told = { share: 'Other accounts need their share.', free_tier: 'Other tiers come first.' }
  const of = (reason: TurnedAway, hint?: string): readonly Refusal[] =>
    WAITS_MS.map(retryAfterMs => new Refusal('overloaded', reason, { retryAfterMs, ...(hint && { hint }) }))
  return {
    shut: of('shut'),
    full: of('full'),
    free_tier: of('free_tier', told.free_tier),
    share: of('share', told.share),
    pace: of('pace'),
  }
}
