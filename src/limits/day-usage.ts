// Saves the use of day limits every ten seconds and at shutdown, and restores it at the start. Use in the last seconds
// before a crash is lost.
//
// While the gateway runs, day limits refill by the monotonic clock. Only between two runs the wall clock must be used,
// and it may be wrong. Therefore doubtful time refills nothing, and a restart never increases the used amount.

import type { StoreWriter } from '../store/engine/store-engine.ts'
import type { LimitDebt } from '../store/ledger/limit-debts.ts'
import type { LimitCounter } from './limit-counter.ts'

const EVERY_MS = 10_000
/** Rows of one transaction, so that none takes long. */
const BATCH_ROWS = 500
/** How far the wall clock may be off after a start. */
const CLOCK_ERROR_MS = 600_000

export interface DayUsageWriterParts {
  readonly limits: Pick<LimitCounter, 'takeDayUsage'>
  readonly writer: Pick<StoreWriter, 'run'>
  nowMs(): number
  dateMs(): number
  onTrouble(fault: unknown): void
}

/** For each saved name: when, by the monotonic clock, its use is refilled. */
export function restoreDayUsage(
  debts: readonly LimitDebt[],
  { nowMs, dateMs }: { nowMs: number; dateMs: number },
): ReadonlyMap<string, number> {
  const remaining = debts.map(({ name, paidMs, notedMs }) => {
    return [name, Math.min(paidMs - notedMs, paidMs - dateMs + CLOCK_ERROR_MS)] as const
  })
  return new Map(remaining.filter(([, ms]) => ms > 0).map(([name, ms]) => [name, nowMs + ms]))
}

export class DayUsageWriter {
  readonly #parts: DayUsageWriterParts
  readonly #timer: ReturnType<typeof setInterval>
  /** Rows that are not written yet, by name. */
  readonly #waiting = new Map<string, LimitDebt>()
  #writing: Promise<void> | undefined

  constructor(parts: DayUsageWriterParts) {
    this.#parts = parts
    this.#timer = setInterval(() => void this.write(), EVERY_MS)
    this.#timer.unref()
  }

  /** Only one write runs at a time. Rows that could not be written are written the next time, except for increases. */
  write(): Promise<void> {
    this.#writing ??= this.#writeAll()
      .catch(this.#parts.onTrouble)
      .finally(() => (this.#writing = undefined))
    return this.#writing
  }

  /** Writes for the last time. Call it after the last call was counted. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
    await this.write()
  }

  async #writeAll(): Promise<void> {
    const { limits, writer, nowMs, dateMs } = this.#parts
    for (const debt of limits.takeDayUsage(nowMs(), dateMs())) {
      this.#waiting.set(debt.name, mergeDebts(this.#waiting.get(debt.name), debt))
    }
    const rows = [...this.#waiting.values()]
    for (let from = 0; from < rows.length; from += BATCH_ROWS) {
      const batch = rows.slice(from, from + BATCH_ROWS)
      // A write that fails may have been carried out. An increase must not be added twice, so it is not written again.
      for (const { name, isIncrease } of batch) if (isIncrease) this.#waiting.delete(name)
      await writer.run('noteDebts', { debts: batch })
      for (const { name } of batch) this.#waiting.delete(name)
    }
  }
}

/** The later of two debts of one name; of two increases the sum. */
const mergeDebts = (waiting: LimitDebt | undefined, debt: LimitDebt): LimitDebt =>
  waiting === undefined || !debt.isIncrease ? debt : { ...debt, paidMs: debt.paidMs + waiting.paidMs - waiting.notedMs }
