// All pools of a process. When a write finds that its server can only be read, another server has taken over, and the pools
// that only read must leave the old one, too: it would return old rows to them for ever, without any error.

import type { PoolOptions, PostgresAddress } from './pools.ts'
import { PostgresPool } from './pools.ts'

/** A database may also stay read-only for hours. Reads, which work then, should not need new connections all the time. */
const RENEW_EVERY_MS = 2_000
/** A connection that was opened shortly before the address has changed may be one to the old server. */
const SETTLED_MS = 5_000

export interface PoolGroupTimes {
  readonly renewEveryMs: number
  readonly settledMs: number
}

export class PoolGroup {
  readonly #address: PostgresAddress
  readonly #times: PoolGroupTimes
  readonly #pools: PostgresPool[] = []
  #renewedMs = Number.NEGATIVE_INFINITY
  #timer: ReturnType<typeof setTimeout> | undefined
  #isClosed = false

  /** The times are changed only by tests. */
  constructor(address: PostgresAddress, times: Partial<PoolGroupTimes> = {}) {
    this.#address = address
    this.#times = { renewEveryMs: RENEW_EVERY_MS, settledMs: SETTLED_MS, ...times }
  }

  open(options: Omit<PoolOptions, 'address' | 'onReadOnly'>): PostgresPool {
    const pool = new PostgresPool({ ...options, address: this.#address, onReadOnly: () => this.#leaveReadOnly() })
    this.#pools.push(pool)
    return pool
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await Promise.allSettled(this.#pools.map(pool => pool.close()))
  }

  /** Renews all pools now and then while writes are refused, and once more when that is over. */
  #leaveReadOnly(): void {
    if (this.#isClosed) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#renew(), this.#times.settledMs)
    if (performance.now() - this.#renewedMs >= this.#times.renewEveryMs) this.#renew()
  }

  #renew(): void {
    this.#renewedMs = performance.now()
    for (const pool of this.#pools) pool.renew()
  }
}
