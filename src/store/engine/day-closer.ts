// Writes the daily hashes: for each account and each day that is over, once a day. It reads the transfers in small pieces, and
// each row is one short write, so that neither calls nor people wait for it. What a crash interrupts is done by the next run:
// a day that has no row is hashed from its first transfer.
//
// Transfers are taken in the order of the ledger. A clock can be set back; so the day of a transfer is never before the day
// of the transfer before it, nor a day that has a row. Thus nothing ever belongs to a day that is closed.

import type { DayBefore } from '../ledger/daily-hash.ts'
import { DayHash, dayOfMs, NO_HASH } from '../ledger/daily-hash.ts'
import type { QueryResult } from '../queries/queries.ts'
import type { StoreEngine, StoreWriter } from './store-engine.ts'

export interface DayCloserParts {
  readonly queries: Pick<StoreEngine['queries'], 'query'>
  readonly writer: Pick<StoreWriter, 'run'>
  dateMs(): number
}

/** A day is closed this long after its end: by then each of its transfers is committed, whatever clock has dated it. */
const GRACE_MS = 3_600_000
/** How many transfers, and how many accounts, are read at a time. */
const TRANSFERS_AT_ONCE = 500
const ACCOUNTS_AT_ONCE = 100

export class DayCloser {
  readonly #parts: DayCloserParts
  readonly #transfersAtOnce: number
  /** All days before this one are closed. */
  #doneTo = 0
  #isClosed = false

  /** `transfersAtOnce` is changed only by tests. */
  constructor(parts: DayCloserParts, transfersAtOnce = TRANSFERS_AT_ONCE) {
    this.#parts = parts
    this.#transfersAtOnce = transfersAtOnce
  }

  /** Closes all days that are over. Costs nothing if that was done today. */
  async sweep(): Promise<void> {
    const { queries, dateMs } = this.#parts
    const openDay = dayOfMs(dateMs() - GRACE_MS)
    if (openDay <= this.#doneTo) return
    for (let after: number | null = 0; after !== null && !this.#isClosed; ) {
      const page: QueryResult<'accountsWithOpenDays'> = await queries.query('accountsWithOpenDays', {
        after,
        limit: ACCOUNTS_AT_ONCE,
      })
      for (const accountId of page.ids) await this.#closeAccount(accountId, openDay)
      after = page.next
    }
    if (!this.#isClosed) this.#doneTo = openDay
  }

  /** Ends a running sweep after its next piece. */
  close(): void {
    this.#isClosed = true
  }

  /** Closes the days of an account before the one that is open. */
  async #closeAccount(accountId: number, openDay: number): Promise<void> {
    const { queries } = this.#parts
    const last = await queries.query('lastClosedDay', { accountId })
    // The audit has found that its last transfer is gone: there is nothing that a new row could be chained to.
    if (last !== null && last.lastSeq === null) return
    let seq = last?.lastSeq ?? 0
    let before: DayBefore = {
      balance: BigInt(last?.balance ?? 0),
      hash: last === null ? NO_HASH : Buffer.from(last.hash, 'hex'),
    }
    let previous = last?.hash ?? null
    let earliest = last === null ? 0 : last.day + 1
    let day: DayHash | undefined
    for (;;) {
      if (this.#isClosed) return
      const startMs = performance.now()
      const lines = await queries.query('transfersAfter', { accountId, seq, limit: this.#transfersAtOnce })
      for (const line of lines) {
        const ofLine = Math.max(dayOfMs(line.madeMs), earliest)
        if (day !== undefined && ofLine > day.day) {
          const closed = await this.#write(accountId, day, previous)
          if (closed === undefined) return
          before = closed
          previous = closed.hash.toString('hex')
          day = undefined
        }
        if (ofLine >= openDay) return
        earliest = ofLine
        day ??= new DayHash(accountId, ofLine, before)
        day.add(line)
        seq = line.seq
      }
      if (lines.length < this.#transfersAtOnce) break
      // Old data is hashed on the thread that serves calls. It gets half of the time at most.
      await Bun.sleep(performance.now() - startMs)
    }
    if (day !== undefined) await this.#write(accountId, day, previous)
  }

  /** Undefined where another process has written the row. */
  async #write(accountId: number, ended: DayHash, previous: string | null): Promise<DayBefore | undefined> {
    const { hash, balance, ...row } = ended.end()
    const input = { accountId, ...row, balance: String(balance), hash: hash.toString('hex'), previous }
    const { done } = await this.#parts.writer.run('closeDay', input)
    return done === 'closed' ? { balance, hash } : undefined
  }
}
