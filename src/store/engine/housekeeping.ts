// Deletes expired data, and writes the daily hashes of the ledger. What expires: answers of idempotent calls, bodies, rows
// of the vault, sessions, service tokens that have ended, and records that an operator has ordered to delete. A sweep runs
// every ten minutes and deletes a few rows at a time, so that no call waits for it.

import { expiredBefore } from '../ledger/idempotency-rows.ts'
import type { RecordDeleter } from '../records/record-deleter.ts'
import type { DayCloser } from './day-closer.ts'
import type { BodyStorage, Jobs, StoreWriter } from './store-engine.ts'

export interface HousekeepingParts {
  readonly writer: Pick<StoreWriter, 'run'>
  readonly bodies: Pick<BodyStorage, 'deleteExpired'>
  readonly recordDeleter: Pick<RecordDeleter, 'sweep'>
  readonly dayCloser: Pick<DayCloser, 'sweep' | 'close'>
  readonly jobs: Pick<Jobs, 'isOurs'>
  dateMs(): number
  onError(fault: unknown): void
}

const EVERY_MS = 600_000
/** Closing days needs the thread of queries. A gateway that has just started serves its first calls without that thread. */
const CLOSE_DAYS_AFTER_MS = 10_000

export class Housekeeping {
  readonly #parts: HousekeepingParts
  readonly #timers: readonly ReturnType<typeof setTimeout>[]
  #currentSweep: Promise<void> | undefined
  #closingDays: Promise<void> | undefined
  #closed = false

  constructor(parts: HousekeepingParts) {
    this.#parts = parts
    this.#timers = [
      setInterval(() => void this.sweep(), EVERY_MS),
      setInterval(() => void this.closeDays(), EVERY_MS),
      setTimeout(() => void this.closeDays(), CLOSE_DAYS_AFTER_MS),
    ]
    for (const timer of this.#timers) timer.unref()
    void this.sweep()
  }

  /** Runs a sweep, or joins the sweep that is running. */
  sweep(): Promise<void> {
    this.#currentSweep ??= this.#sweepOnce()
      .catch(this.#parts.onError)
      .finally(() => (this.#currentSweep = undefined))
    return this.#currentSweep
  }

  async #sweepOnce(): Promise<void> {
    const { writer, bodies, recordDeleter, jobs, dateMs, onError } = this.#parts
    if (!(await jobs.isOurs('housekeeping')) || this.#closed) return
    bodies.deleteExpired()
    // Deleting millions of records may take hours; the rest of the sweep does not wait.
    recordDeleter.sweep().catch(onError)
    const before = expiredBefore(dateMs())
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetAnswers', { before })).count
    const nowMs = dateMs()
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetKept', { nowMs })).count
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetSessions', { nowMs })).count
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetServiceTokens', { nowMs })).count
  }

  /** Writes the daily hashes, or joins what is writing them: hashing old transfers may take hours. */
  closeDays(): Promise<void> {
    this.#closingDays ??= this.#closeDaysOnce()
      .catch(this.#parts.onError)
      .finally(() => (this.#closingDays = undefined))
    return this.#closingDays
  }

  async #closeDaysOnce(): Promise<void> {
    const { dayCloser, jobs } = this.#parts
    if (!(await jobs.isOurs('housekeeping')) || this.#closed) return
    await dayCloser.sweep()
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const timer of this.#timers) clearTimeout(timer)
    this.#parts.dayCloser.close()
    await this.#currentSweep
    await this.#closingDays
  }
}
