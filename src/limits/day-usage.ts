// Writes down what day limits have given, every so often and at the end, and reads it at the start. What was given in
// the last seconds before a crash is not in it.
//
// Only here is the calendar asked: a day's limit goes by the steady clock while the gateway runs. Between two runs
// nothing else is there to go by, so that it is not believed to the minute: time that may not have passed pays nothing,
// and a start never makes anybody owe more.

import type { Writer } from '../store/engine/writer.ts'
import type { LimitDebt } from '../store/ledger/limit-debts.ts'
import type { Limits } from './limits.ts'

const EVERY_MS = 10_000
/** So that no commit takes long for it. */
const AT_ONCE = 500
/** How far the calendar may be off after a start. */
const DOUBT_MS = 600_000

export interface DayNotesParts {
  readonly limits: Pick<Limits, 'takeDayNotes'>
  readonly writer: Pick<Writer, 'run'>
  nowMs(): number
  dateMs(): number
  onTrouble(fault: unknown): void
}

/** Until when, by the steady clock, what was written down takes to be paid. */
export function rememberedDebts(
  debts: readonly LimitDebt[],
  { nowMs, dateMs }: { nowMs: number; dateMs: number },
): ReadonlyMap<string, number> {
  const left = debts.map(({ name, paidMs, notedMs }) => {
    return [name, Math.min(paidMs - notedMs, paidMs - dateMs + DOUBT_MS)] as const
  })
  return new Map(left.filter(([, ms]) => ms > 0).map(([name, ms]) => [name, nowMs + ms]))
}

export class DayNotes {
  readonly #parts: DayNotesParts
  readonly #timer: ReturnType<typeof setInterval>
  /** Not yet written, by name. */
  readonly #waiting = new Map<string, LimitDebt>()
  #writing: Promise<void> | undefined

  constructor(parts: DayNotesParts) {
    this.#parts = parts
    this.#timer = setInterval(() => void this.write(), EVERY_MS)
    this.#timer.unref()
  }

  /** One at a time. What cannot be written is tried again the next time. */
  write(): Promise<void> {
    this.#writing ??= this.#writeAll()
      .catch(this.#parts.onTrouble)
      .finally(() => (this.#writing = undefined))
    return this.#writing
  }

  /** All that is to be known of it must have been taken by then. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
    await this.write()
  }

  async #writeAll(): Promise<void> {
    const { limits, writer, nowMs, dateMs } = this.#parts
    for (const debt of limits.takeDayNotes(nowMs(), dateMs())) this.#waiting.set(debt.name, debt)
    const notes = [...this.#waiting.values()]
    for (let from = 0; from < notes.length; from += AT_ONCE) {
      const some = notes.slice(from, from + AT_ONCE)
      await writer.run('noteDebts', { debts: some })
      for (const { name } of some) this.#waiting.delete(name)
    }
  }
}
