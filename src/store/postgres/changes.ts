// Notifies the parts of this process that keep configuration in memory when any process has changed it. The database has a
// number for each group (0007-revision.sql), which a change raises. A notification says so at once; should it be lost,
// the numbers are read every second anyway.

import { postgresQuery } from '../engine/steps.ts'
import type { Changes, ConfigurationGroup } from '../engine/store-engine.ts'
import { refusalOf } from './faults.ts'
import type { PostgresPool } from './pools.ts'

const CHANNEL = 'weir'
const POLL_EVERY_MS = 1_000
/** A process that has not read the numbers for this long takes no calls. */
const CURRENT_MS_MAX = 3_000

/** The groups whose numbers are the revision of holds. `ledger_batch` adds the same ones. */
const HOLD_GROUPS = ['rules', 'prices'] as const

export interface ChangesOptions {
  /** A listener has failed, or the database did not answer. Both are tried again. */
  onError(fault: unknown): void
  readonly pollEveryMs?: number
  /** Only for tests. Steady; its zero does not matter. */
  steadyMs?(): number
}

type Listener = () => void | Promise<void>

/** Processes of earlier versions take such a notification for a change, and read the numbers. */
const RESET = 'reset-health '

const notify = postgresQuery(`SELECT pg_notify('${CHANNEL}', $1)`)
const readNumbers = postgresQuery<{ name: ConfigurationGroup; number: bigint }>('SELECT name, number FROM revision')

export class PostgresChanges implements Changes {
  readonly #pool: PostgresPool
  readonly #options: ChangesOptions
  readonly #steadyMs: () => number
  readonly #listeners = new Map<ConfigurationGroup, Listener[]>()
  /** The numbers that all listeners of a group know. What they have read may be newer, but not older. */
  readonly #known = new Map<ConfigurationGroup, number>()
  #onReset: (channel: string) => void = () => {}
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined
  #confirmedMs = -Infinity
  #timer: ReturnType<typeof setInterval> | undefined
  #stopListening: (() => Promise<void>) | undefined

  /** The pool should have a connection that is free at any time, and a deadline of about two seconds. */
  constructor(pool: PostgresPool, options: ChangesOptions) {
    this.#pool = pool
    this.#options = options
    this.#steadyMs = options.steadyMs ?? (() => performance.now())
  }

  /** Reads the numbers for the first time, and then again and again. */
  async start(): Promise<void> {
    await this.refresh()
    const refresh = (): void => void this.refresh().catch(fault => this.#options.onError(fault))
    this.#timer = setInterval(refresh, this.#options.pollEveryMs ?? POLL_EVERY_MS)
    const onNotified = (text: string): void => {
      if (text.startsWith(RESET)) this.#onReset(text.slice(RESET.length))
      else if (!this.#isKnown(text)) refresh()
    }
    this.#stopListening = this.#pool.listen(CHANNEL, onNotified, refresh)
  }

  /** The listener is also called soon after this call: something may have changed since its part has read it. */
  subscribe(group: ConfigurationGroup, listener: Listener): void {
    const listeners = this.#listeners.get(group)
    if (listeners === undefined) this.#listeners.set(group, [listener])
    else listeners.push(listener)
    this.#known.delete(group)
  }

  /** Less than any revision while something has not been read yet. */
  get revision(): number {
    let sum = 0
    for (const group of HOLD_GROUPS) sum += this.#known.get(group) ?? -Infinity
    return sum > 0 ? sum : 0
  }

  /** When the numbers were asked for that this process has caught up with, by its steady clock. */
  get confirmedMs(): number {
    return this.#confirmedMs
  }

  /** Whether this process knows the configuration of at most three seconds ago. If not, it must take no calls. */
  get isCurrent(): boolean {
    return this.#steadyMs() - this.#confirmedMs <= CURRENT_MS_MAX
  }

  /** A notification may be lost. Then the operator, who sees that the channel is still blocked there, asks again. */
  async askForReset(channel: string): Promise<void> {
    await this.#pool.readPoint(notify.get(RESET + channel)).catch(fault => {
      throw refusalOf(fault)
    })
  }

  onReset(listener: (channel: string) => void): void {
    this.#onReset = listener
  }

  refresh(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#check().finally(() => (this.#running = undefined))
      return this.#running
    }
    // The running check may have read the numbers already, so that one more is needed, for all that ask meanwhile.
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined
        return this.refresh()
      })
    return this.#next
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#stopListening?.()
    await this.#running?.catch(() => {})
  }

  /** Reads the numbers, and lets the listeners of changed groups read the rest. */
  async #check(): Promise<void> {
    const sentMs = this.#steadyMs()
    const rows = await this.#pool.readPoint(readNumbers.all())
    // A number may also be smaller than before: after a failover to a server that has not got the last changes.
    const changed = rows.filter(({ name, number }) => this.#known.get(name) !== Number(number))
    const notified = await Promise.allSettled(changed.map(({ name }) => this.#notify(name)))
    for (const one of notified) if (one.status === 'rejected') throw one.reason
    // All at once, because a change may raise several numbers. A group with a new listener is notified once more.
    for (const [at, { name, number }] of changed.entries()) {
      const count = (notified[at] as PromiseFulfilledResult<number>).value
      if (count === (this.#listeners.get(name)?.length ?? 0)) this.#known.set(name, Number(number))
    }
    this.#confirmedMs = sentMs
  }

  /** Calls all listeners of a group, and returns how many there were. */
  async #notify(group: ConfigurationGroup): Promise<number> {
    const listeners = this.#listeners.get(group) ?? []
    return (await Promise.all(listeners.map(async listener => listener()))).length
  }

  /** Whether a notification contains nothing new. */
  #isKnown(text: string): boolean {
    const [group, number] = text.split(' ')
    return this.#known.get(group as ConfigurationGroup) === Number(number)
  }
}
