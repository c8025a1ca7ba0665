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

export class Housekeeping {
  readonly #parts: HousekeepingParts
  readonly #timer: ReturnType<typeof setInterval>
  #currentSweep: Promise<void> | undefined
  #closingDays: Promise<void> | undefined
  #closed = false

  constructor(parts: HousekeepingParts) {
    this.#parts = parts
    this.#timer = setInterval(() => void this.sweep(), EVERY_MS)
    this.#timer.unref()
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
    const { writer, bodies, recordDeleter, dayCloser, jobs, dateMs, onError } = this.#parts
    if (!(await jobs.isOurs('housekeeping')) || this.#closed) return
    bodies.deleteExpired()
    // Deleting millions of records may take hours, and so may hashing old transfers; the rest of the sweep does not wait.
    recordDeleter.sweep().catch(onError)
    this.#closingDays ??= dayCloser
      .sweep()
      .catch(onError)
      .finally(() => (this.#closingDays = undefined))
    const before = expiredBefore(dateMs())
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetAnswers', { before })).count
    const nowMs = dateMs()
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetKept', { nowMs })).count
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetSessions', { nowMs })).count
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetServiceTokens', { nowMs })).count
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    this.#parts.dayCloser.close()
    await this.#currentSweep
    await this.#closingDays
  }
}
