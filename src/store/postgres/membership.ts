// The lease of this process among all processes that use the database (see 0003-processes.sql). It is renewed every few
// seconds, over connections of its own, so that no other work delays it.

import { postgresQuery } from '../engine/steps.ts'
import { sqlStateOf } from './faults.ts'
import type { PostgresPool } from './pools.ts'
import { buildSlotMinter } from './slot-ids.ts'

export const LEASE_MS = 15_000
export const RENEW_EVERY_MS = 3_000
/** After a renewal that failed. When the database is back, the lease may have only moments left. */
export const RENEW_AGAIN_MS = 200
/** The process stops taking calls this long before its lease runs out. */
const MARGIN_MS = 1_000

export interface ProcessFacts {
  readonly version: string
  /** How others may reach this process, for people. */
  readonly address: string
  /** The slot and epoch of the process that used the same data folder before, and is known to be dead. */
  readonly predecessor?: { readonly slot: number; readonly epoch: number }
}

export interface ProcessClocks {
  /** Steady; its zero does not matter. */
  steadyMs(): number
  dateMs(): number
  pause?(ms: number): Promise<void>
}

const realClocks: ProcessClocks = { steadyMs: () => performance.now(), dateMs: () => Date.now() }

/** The error of a registration when all slots are in use. */
const NO_SLOT = 'WR002'

interface RegisteredRow {
  readonly slot: bigint
  readonly epoch: bigint
  readonly ids_from_ms: bigint
  readonly ids_until_ms: bigint
}

const register = postgresQuery<RegisteredRow>(
  'SELECT * FROM register_process($1, $2, $3, CAST($4 AS BIGINT), CAST($5 AS BIGINT))',
)
const renew = postgresQuery<{ granted_ms: bigint | null }>('SELECT renew_lease($1, $2, $3) AS granted_ms')
const fence = postgresQuery<{ fenced: bigint }>('SELECT fence_dead_processes($1, $2, $3) AS fenced')
const leave = postgresQuery('SELECT leave_process($1, $2)')
const countAlive = postgresQuery<{ n: bigint }>('SELECT count(*) AS n FROM process WHERE is_dead = 0')
const findRunOut = postgresQuery<{ now_ms: bigint; n: bigint }>(
  `SELECT database_ms() AS now_ms,
     (SELECT count(*) FROM process WHERE is_dead = 0 AND expires_ms < database_ms()) AS n`,
)
const fenceRunOut = postgresQuery(
  `UPDATE process SET is_dead = 1, epoch = epoch + 1 WHERE slot IN
     (SELECT slot FROM process WHERE is_dead = 0 AND expires_ms < $1 ORDER BY slot FOR UPDATE SKIP LOCKED)`,
)

export class Membership {
  readonly slot: number
  readonly epoch: number
  /** Mints ids that no other process mints. */
  readonly mintId: () => number
  readonly #pool: PostgresPool
  readonly #clocks: ProcessClocks
  #aliveUntilMs: number
  #idsUntilMs: number
  #isFenced = false
  #isRenewed = true
  #isStopped = false
  #timer: ReturnType<typeof setTimeout> | undefined

  private constructor(pool: PostgresPool, row: RegisteredRow, sentMs: number, clocks: ProcessClocks) {
    this.#pool = pool
    this.#clocks = clocks
    this.slot = Number(row.slot)
    this.epoch = Number(row.epoch)
    this.#aliveUntilMs = sentMs + LEASE_MS - MARGIN_MS
    this.#idsUntilMs = Number(row.ids_until_ms)
    const grant = { slot: this.slot, fromMs: Number(row.ids_from_ms) }
    this.mintId = buildSlotMinter(grant, clocks.dateMs, () => this.#idsUntilMs)
  }

  /** Registers this process. */
  static async join(pool: PostgresPool, facts: ProcessFacts, clocks: ProcessClocks = realClocks): Promise<Membership> {
    const { version, address, predecessor } = facts
    const sentMs = clocks.steadyMs()
    const { slot = null, epoch = null } = predecessor ?? {}
    try {
      const row = await pool.transact(register.get(version, address, LEASE_MS, slot, epoch))
      return new Membership(pool, row!, sentMs, clocks)
    } catch (fault) {
      if (sqlStateOf(fault) !== NO_SLOT || !(await freeSlots(pool, clocks))) throw fault
      return Membership.join(pool, facts, clocks)
    }
  }

  /**
   * Whether no other process can have fenced this one. It counts from the time at which the last renewal was sent, by
   * the clock of this process: the database has counted from a later moment.
   */
  get isAlive(): boolean {
    return !this.#isFenced && this.#clocks.steadyMs() < this.#aliveUntilMs
  }

  get isFenced(): boolean {
    return this.#isFenced
  }

  /** Whether the last try to renew the lease had an answer. Without one, the lease may run out at any moment. */
  get isRenewed(): boolean {
    return this.#isRenewed
  }

  /** Whether this process can mint ids. It cannot while its clock is ahead of what the database has granted. */
  get hasIds(): boolean {
    return this.#clocks.dateMs() < this.#idsUntilMs
  }

  /** Renews the lease. Returns false when the process is fenced; then it must register again. Throws without an answer. */
  async renew(): Promise<boolean> {
    if (this.#isFenced) return false
    const sentMs = this.#clocks.steadyMs()
    const row = await this.#pool.transact(renew.get(this.slot, this.epoch, LEASE_MS))
    const granted = row!.granted_ms
    if (granted === null) {
      this.#isFenced = true
      return false
    }
    // An answer that comes late must not take back what a later renewal has got.
    this.#aliveUntilMs = Math.max(this.#aliveUntilMs, sentMs + LEASE_MS - MARGIN_MS)
    this.#idsUntilMs = Math.max(this.#idsUntilMs, Number(granted))
    return true
  }

  /** Fences the processes whose leases have run out. Returns how many. */
  async fenceDead(): Promise<number> {
    const row = await this.#pool.transact(fence.get(this.slot, this.epoch, LEASE_MS))
    return Number(row!.fenced)
  }

  /** The number of processes that are not known to be dead. */
  async countAlive(): Promise<number> {
    return Number((await this.#pool.transact(countAlive.get()))!.n)
  }

  /** Renews the lease again and again. Failures are tried again: the process notices by `isAlive`. */
  start(onFenced: () => void, everyMs = RENEW_EVERY_MS): void {
    const renewAfter = (ms: number): void => {
      this.#timer = setTimeout(async () => {
        const isOurs = await this.renew().catch(() => undefined)
        if (this.#isStopped) return
        this.#isRenewed = isOurs !== undefined
        if (isOurs === false) {
          this.#stop()
          onFenced()
        } else renewAfter(isOurs ? everyMs : RENEW_AGAIN_MS)
      }, ms)
    }
    renewAfter(everyMs)
  }

  /** Gives the slot back. To be called when all calls are settled. */
  async leave(): Promise<void> {
    this.#stop()
    this.#isFenced = true
    await this.#pool.transact(leave.get(this.slot, this.epoch))
  }

  #stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}

/**
 * Fences processes that are dead for certain, and returns whether there were any. Only a member does this otherwise. But when
 * gateways are killed soon after each start, again and again, all slots belong to the dead, and none can become a member.
 *
 * It watches their leases for the time of one lease first, because all leases have run out after an outage of the database.
 * Should the database be away meanwhile, this throws, and nobody is fenced.
 */
async function freeSlots(pool: PostgresPool, { pause = Bun.sleep }: ProcessClocks): Promise<boolean> {
  const { now_ms: sinceMs, n } = (await pool.transact(findRunOut.get()))!
  if (n === 0n) return false
  for (let watchedMs = 0; watchedMs < LEASE_MS; watchedMs += RENEW_EVERY_MS) {
    await pause(RENEW_EVERY_MS)
    await pool.transact(countAlive.get())
  }
  // A lease that was renewed meanwhile runs out later.
  return (await pool.transact(fenceRunOut.run(sinceMs))) > 0
}
