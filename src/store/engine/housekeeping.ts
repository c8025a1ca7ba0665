// What is kept only for a while is let go when its time is over: answers of idempotent calls, bodies, what is kept
// between calls, and records that are to be deleted. Looked after every so often and some at a time, so that no call
// waits for it.

import { forgottenBefore } from '../ledger/idempotency-rows.ts'
import type { Bodies } from '../records/bodies.ts'
import type { RecordDeleting } from '../records/delete-records.ts'
import type { Writer } from './writer.ts'

export interface HousekeepingParts {
  readonly writer: Pick<Writer, 'run'>
  readonly bodies: Pick<Bodies, 'forget'>
  readonly deleting: Pick<RecordDeleting, 'sweep'>
  dateMs(): number
  onTrouble(fault: unknown): void
}

const EVERY_MS = 600_000

export class Housekeeping {
  readonly #parts: HousekeepingParts
  readonly #timer: ReturnType<typeof setInterval>
  #sweeping: Promise<void> | undefined
  #closed = false

  constructor(parts: HousekeepingParts) {
    this.#parts = parts
    this.#timer = setInterval(() => void this.sweep(), EVERY_MS)
    this.#timer.unref()
    void this.sweep()
  }

  /** One at a time. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweepOnce()
      .catch(this.#parts.onTrouble)
      .finally(() => (this.#sweeping = undefined))
    return this.#sweeping
  }

  async #sweepOnce(): Promise<void> {
    const { writer, bodies, deleting, dateMs, onTrouble } = this.#parts
    bodies.forget()
    // Millions of them may take hours, for which the rest does not wait.
    deleting.sweep().catch(onTrouble)
    const before = forgottenBefore(dateMs())
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetAnswers', { before })).count
    const nowMs = dateMs()
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetKept', { nowMs })).count
    for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('forgetSessions', { nowMs })).count
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#sweeping
  }
}
