// Which process does a job (see 0008-jobs.sql). A process keeps a job until it gives it back or is fenced. As long as no
// other process can have fenced it, which it knows by its own clock, it need not ask the database again.
//
// A process that is fenced may still be in the middle of a job. So each job must bear that two processes do it for a
// moment: it deletes rows, changes them only if they are as expected, or sends what may arrive twice.

import type { SqlValue } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import type { JobName, Jobs, ResponseJob, ResponseWish } from '../engine/store-engine.ts'
import type { Membership } from './membership.ts'
import type { PostgresPool } from './pools.ts'

/** Fencing raises the epoch. A lease with a later one is newer than what this statement sees of the processes. */
const IS_DEAD = `EXISTS (SELECT 1 FROM process p WHERE p.slot = job_lease.slot AND p.epoch > job_lease.epoch)`
const IS_OF_US = 'job_lease.slot = $2 AND job_lease.epoch = $3'

const take = postgresQuery(
  `INSERT INTO job_lease (name, slot, epoch)
   SELECT CAST($1 AS TEXT), slot, epoch FROM process WHERE slot = $2 AND epoch = $3 AND is_dead = 0
   ON CONFLICT (name) DO UPDATE SET slot = excluded.slot, epoch = excluded.epoch, asked = NULL
   WHERE (${IS_OF_US}) OR ${IS_DEAD}`,
)
const giveBack = postgresQuery(`DELETE FROM job_lease WHERE name = $1 AND ${IS_OF_US}`)
const findOther = postgresQuery(`SELECT 1 FROM job_lease WHERE name = $1 AND NOT (${IS_OF_US}) AND NOT ${IS_DEAD}`)
/** What is asked already is not written again: those who follow a response ask again and again. */
const ask = postgresQuery(
  `UPDATE job_lease SET asked = $4 WHERE name = $1 AND NOT (${IS_OF_US})
   AND asked IS DISTINCT FROM $4 AND (asked IS NULL OR asked = 'events' OR $4 = 'delete')`,
)
const findAsked = postgresQuery<{ name: ResponseJob; asked: ResponseWish }>(
  'SELECT name, asked FROM job_lease WHERE slot = $1 AND epoch = $2 AND asked IS NOT NULL',
)
const takeEvents = postgresQuery<{ name: ResponseJob }>(
  `UPDATE job_lease SET asked = NULL WHERE slot = $1 AND epoch = $2 AND asked = 'events' RETURNING name`,
)
const giveBackAll = postgresQuery('DELETE FROM job_lease WHERE slot = $1 AND epoch = $2')

const deleteDead = postgresQuery(`DELETE FROM job_lease WHERE ${IS_DEAD}`)
const failResponses = postgresQuery(
  `UPDATE kept_response r SET status = 'failed' WHERE status IN ('queued', 'in_progress') AND upstream_id IS NULL
   AND NOT EXISTS (SELECT 1 FROM job_lease WHERE name = 'response ' || r.account_id || '/' || r.id AND NOT ${IS_DEAD})`,
)

const RETURN_EVERY_MS = 1_000

type JobOwner = Pick<Membership, 'slot' | 'epoch' | 'isAlive'>

export class PostgresJobs implements Jobs {
  readonly #pool: Pick<PostgresPool, 'transact' | 'readPoint'>
  readonly #owner: () => JobOwner
  readonly #held = new Set<JobName>()
  /** Jobs that were given back, and whose leases could not be deleted yet: others would wait for them for ever. */
  readonly #unreturned = new Set<JobName>()
  #returning: Promise<void> | undefined
  /** Whose jobs are held. */
  #holder: JobOwner | undefined
  #isClosed = false
  #timer: ReturnType<typeof setInterval> | undefined

  /** `owner` returns another slot and epoch after this process was fenced and has joined again: it has lost its jobs. */
  constructor(pool: Pick<PostgresPool, 'transact' | 'readPoint'>, owner: () => JobOwner) {
    this.#pool = pool
    this.#owner = owner
  }

  /** False also where the database does not answer: then no job can be done. */
  async isOurs(job: JobName): Promise<boolean> {
    const owner = this.#owner()
    if (this.#isClosed || !owner.isAlive) return false
    if (owner !== this.#holder) this.#held.clear()
    this.#holder = owner
    if (this.#held.has(job)) return true
    // It must not be deleted after it was taken again.
    if (this.#unreturned.delete(job)) await this.#returning
    if (owner !== this.#owner()) return false
    const taken = await this.#pool.transact(take.run(...this.#valuesOf(job))).catch(() => undefined)
    // It may have been taken although there was no answer, and others would wait for it.
    if (taken === undefined) {
      this.#unreturned.add(job)
      this.#returnLater()
    }
    if (!taken || this.#isClosed || owner !== this.#owner()) return false
    this.#held.add(job)
    return true
  }

  async isElsewhere(job: JobName): Promise<boolean> {
    return (await this.#pool.readPoint(findOther.get(...this.#valuesOf(job)))) !== undefined
  }

  /** A lease that cannot be deleted now is deleted as soon as the database answers, unless this process takes it again. */
  async giveBack(job: JobName): Promise<void> {
    if (!this.#held.delete(job)) return
    this.#unreturned.add(job)
    await this.#return()
    if (this.#unreturned.size > 0) this.#returnLater()
  }

  async ask(job: ResponseJob, wish: ResponseWish): Promise<void> {
    await this.#pool.transact(ask.run(...this.#valuesOf(job), wish))
  }

  /**
   * A wish for events is removed before they are stored: one that comes later is another wish, for later events. What has
   * been replaced by the wish to cancel or delete in the meantime stays.
   */
  async takeWishes(): Promise<ReadonlyMap<ResponseJob, ResponseWish>> {
    const { slot, epoch } = this.#owner()
    const rows = await this.#pool.readPoint(findAsked.all(slot, epoch))
    const ends = rows.filter(({ asked }) => asked !== 'events')
    const wishes = new Map<ResponseJob, ResponseWish>(ends.map(({ name, asked }) => [name, asked]))
    if (ends.length === rows.length) return wishes
    for (const { name } of await this.#pool.transact(takeEvents.all(slot, epoch))) wishes.set(name, 'events')
    return wishes
  }

  /** One attempt at a time, for all of them. */
  #return(): Promise<void> {
    this.#returning ??= this.#deleteLeases().finally(() => (this.#returning = undefined))
    return this.#returning
  }

  /** Also deletes those that are given back meanwhile. Stops at the first that cannot be deleted. */
  async #deleteLeases(): Promise<void> {
    for (const job of this.#unreturned) {
      try {
        await this.#pool.transact(giveBack.run(...this.#valuesOf(job)))
        this.#unreturned.delete(job)
      } catch {
        return
      }
    }
  }

  #returnLater(): void {
    this.#timer ??= setInterval(() => {
      if (this.#unreturned.size > 0 && !this.#isClosed) return void this.#return()
      clearInterval(this.#timer)
      this.#timer = undefined
    }, RETURN_EVERY_MS)
    this.#timer.unref()
  }

  /** Gives all jobs back. */
  async close(): Promise<void> {
    this.#isClosed = true
    const { slot, epoch } = this.#owner()
    await this.#pool.transact(giveBackAll.run(slot, epoch)).catch(() => {})
  }

  #valuesOf(job: JobName): SqlValue[] {
    const { slot, epoch } = this.#owner()
    return [job, slot, epoch]
  }
}

/** Ends what only a dead process could have ended: responses that it made in the background. Returns their number. */
export function recoverDeadJobs(pool: Pick<PostgresPool, 'transact'>): Promise<number> {
  return pool.transact(
    (function* () {
      const failed = yield* failResponses.run()
      yield* deleteDead.run()
      return failed
    })(),
  )
}
