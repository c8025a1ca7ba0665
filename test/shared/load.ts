// A load on several gateways: the callers, the upstream, the log and the rules of the crash tests, and a load balancer.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { Callers } from '../crash/callers.ts'
import type { Verdict } from '../crash/check.ts'
import { Checker } from '../crash/check.ts'
import type { EventLog } from '../crash/event-log.ts'
import { openEventLog } from '../crash/event-log.ts'
import { budgets, credits, poorKey } from '../crash/plan.ts'
import { answerByPlan, MODEL } from '../crash/upstream.ts'
import { HUNG_MS, until } from '../support/gateway.ts'
import { countOpenHolds, sharedBooksReader } from './books.ts'
import type { Fleet, FleetMember } from './fleet.ts'
import { CHECKPOINT_SECONDS } from './fleet.ts'

const LOOK_EVERY_MS = 100
const LOOK_MS_MAX = 1_000
/**
 * How long a gateway counts as ready after it was asked. A gateway that stops serves for longer, and a pause of this process
 * must not hide that it has stopped.
 */
const READY_MS_MAX = 1_500
const PAYMENT_USD = '0.0001'
/** A commit that takes longer than this shows that other programs keep the machine busy. */
export const SLOW_MS = 1_000

/** A commit that waits for the disk and changes nothing. */
const commit = postgresQuery(`SELECT pg_logical_emit_message(true, 'weir', '')`)

/**
 * Calls `onSlow` when a commit takes long, and what it returns when the commit has ended. On a machine that is too slow for
 * the deadlines of gateways, calls fail as they do when the database is away.
 */
export async function watchMachine(pool: PostgresPool, onSlow: () => () => void, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    let end: (() => void) | undefined
    const timer = setTimeout(() => (end = onSlow()), SLOW_MS)
    await pool.transact(commit.get()).catch(() => {})
    clearTimeout(timer)
    end?.()
    await Bun.sleep(LOOK_EVERY_MS)
  }
}

/** Sends callers to the gateways in turn. `sure`: only to those that have said a moment ago that they are ready. */
export class Balancer {
  readonly #members: readonly FleetMember[]
  readonly #sure: boolean
  /** When those that are ready were asked. */
  readonly #ready = new Map<FleetMember, number>()
  readonly #timers: ReturnType<typeof setInterval>[]
  #opened = Promise.withResolvers<void>()
  #next = 0
  #round = 0
  #isOpen = false
  #isClosed = false

  constructor(members: readonly FleetMember[], sure: boolean) {
    this.#members = members
    this.#sure = sure
    this.#timers = members.map(member => setInterval(() => void this.#look(member), LOOK_EVERY_MS))
  }

  /** Like the gate of the crash tests. A call that is sent again waits until what it did before has been checked. */
  async pass(tries = 0): Promise<string | undefined> {
    const round = this.#round
    for (;;) {
      await this.#opened.promise
      if (this.#isClosed) return undefined
      const member = this.#members[this.#next++ % this.#members.length]!
      const mayPass = tries === 0 || this.#round > round
      if (mayPass && (!this.#sure || this.#isReady(member))) return member.url
      await Bun.sleep(5)
    }
  }

  open(): void {
    this.#isOpen = true
    this.#opened.resolve()
  }

  shut(): void {
    this.#round++
    if (this.#isOpen) this.#opened = Promise.withResolvers<void>()
    this.#isOpen = false
  }

  close(): void {
    this.#isClosed = true
    this.#opened.resolve()
    for (const timer of this.#timers) clearInterval(timer)
  }

  #isReady(member: FleetMember): boolean {
    return performance.now() - (this.#ready.get(member) ?? -Infinity) < READY_MS_MAX
  }

  async #look(member: FleetMember): Promise<void> {
    const askedMs = performance.now()
    const answer = await fetch(`${member.url}/health/ready`, { signal: AbortSignal.timeout(LOOK_MS_MAX) }).catch(
      () => undefined,
    )
    if (answer?.status === 200) this.#ready.set(member, askedMs)
    else this.#ready.delete(member)
  }
}

export interface LoadOptions {
  readonly fleet: Fleet
  /** The provider of the fleet. */
  readonly upstream: FakeUpstream
  readonly seed: number
  readonly callers: number
  /** Callers use only gateways that have said that they are ready. */
  readonly sure: boolean
}

export class Load {
  readonly fleet: Fleet
  readonly log: EventLog
  readonly balancer: Balancer
  readonly #callers: Callers
  readonly #checker: Checker
  readonly #folder: string
  readonly #pool: PostgresPool
  #besides: readonly Promise<void>[] = []
  #faults = 0
  #isOver = false

  private constructor({ fleet, upstream, seed, callers: count, sure }: LoadOptions, keys: readonly string[]) {
    this.fleet = fleet
    this.#folder = mkdtempSync(join(tmpdir(), 'weir-load-'))
    const log = join(this.#folder, 'events.jsonl')
    this.log = openEventLog(log)
    upstream.planModel(MODEL, answerByPlan(seed, this.log))
    const pool = this.fleet.postgres.openAgain(this.fleet.database)
    this.#pool = pool
    this.balancer = new Balancer(this.fleet.members, sure)
    const again = ['broken', 'refused', 'error_event'] as const
    this.#callers = new Callers({ seed, count, keys, model: MODEL, log: this.log, gate: this.balancer, again })
    const checkpointMs = CHECKPOINT_SECONDS * 1_000
    this.#checker = new Checker({ read: sharedBooksReader(pool), log, checkpointMs })
  }

  static async start(options: LoadOptions): Promise<Load> {
    const [first] = options.fleet.members
    const keys: string[] = []
    for (const credit of credits)
      keys.push((await first!.insist('keys create', { tier: 'pro', qpm: '100000', credit })).key as string)
    for (const [key, amount] of Object.entries(budgets))
      await first!.insist('budgets set', { scope: keys[Number(key)], span: 'total', amount })
    const load = new Load(options, keys)
    // A payment that is booked before the checker begins would be missing among those that it finds later.
    await load.#checker.begin()
    load.#besides = [
      load.#bookPayments(keys[poorKey]!),
      watchMachine(
        load.#pool,
        () => load.fault('the machine is slow'),
        () => load.#isOver,
      ),
    ]
    return load
  }

  get sent(): number {
    return this.#callers.sent
  }

  /** Something fails from now on until the returned function is called. */
  fault(name: string): () => void {
    this.#faults++
    this.log.write({ kind: 'fault', name, ms: Date.now() })
    return () => {
      if (--this.#faults === 0) this.log.write({ kind: 'calm' })
    }
  }

  /** Waits until so many more calls were sent. */
  async untilSent(more: number): Promise<void> {
    const wanted = this.sent + more
    await until(() => this.sent >= wanted, 'the callers have sent calls')
  }

  /** Ends the load for a while, and compares what was seen with the ledger. */
  async look(): Promise<Verdict> {
    this.balancer.shut()
    await until(() => this.#callers.underWay === 0, 'every caller has seen the end of its call')
    await this.#untilSettled()
    return await this.#checker.look()
  }

  async close(): Promise<void> {
    this.balancer.close()
    this.#isOver = true
    await Promise.all([this.#callers.gone(), ...this.#besides])
    this.log.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #untilSettled(): Promise<void> {
    const endMs = performance.now() + HUNG_MS
    for (;;) {
      const open = await countOpenHolds(this.#pool).catch(() => Infinity)
      const states = await Promise.all(this.fleet.members.map(member => stateOf(member).catch(() => undefined)))
      const isOver = states.every(state => state?.callsUnderWay === 0 && state.unsettledCalls === 0)
      if (open === 0 && isOver) return
      if (performance.now() > endMs) throw new Error(`${open} calls are not settled: ${JSON.stringify(states)}`)
      await Bun.sleep(50)
    }
  }

  /** Each payment is booked until one gateway has said that it is. The ledger must have it once. */
  async #bookPayments(account: string): Promise<void> {
    const { members } = this.fleet
    for (let [payment, tries] = [0, 0]; !this.#isOver; tries++) {
      const reference = `payment ${payment}`
      try {
        await members[tries % members.length]!.weir('top-up', { account, amount: PAYMENT_USD, reference })
        this.log.write({ kind: 'booked', reference })
        payment++
      } catch {
        // It was killed, or the database is away.
      }
      await Bun.sleep(20)
    }
  }
}

interface MemberState {
  readonly callsUnderWay: number
  readonly unsettledCalls: number
}

const stateOf = async (member: FleetMember): Promise<MemberState> =>
  (await member.manage('POST', '/machine/doctor')).state as MemberState
