// Writes the daily hashes: for each account and each day that is over, once a day. It reads the transfers in small pieces, and
// each row is one short write, so that neither calls nor people wait for it. What a crash interrupts is done by the next run:
// a day that has no row is hashed from its first transfer.
//
// Transfers are taken in the order of the ledger. A clock can be set back; so the day of a transfer is never before the day
// of the transfer before it, nor a day that has a row. Thus nothing ever belongs to a day that is closed.
//
// A clock can also be ahead for a while. A transfer that is dated in the future was certainly dated wrongly: it belongs to
// the day of the next transfer that is not. Else all later transfers of its account would wait for that day in the future.
// Where the clock was ahead for so long that a day in the future was closed, they do wait: the rows of an account are in the
// order of their days, and a row with a false day would be worse than none. Then each run fails at its end, for the log.

import { textId } from '../../base/ids.ts'
import type { DayBefore, DayLine } from '../ledger/daily-hash.ts'
import { DayHash, dayOfMs, dayText, NO_HASH } from '../ledger/daily-hash.ts'
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

/** Lines up to this place in the ledger that are dated in the future belong to this day. */
interface FutureLines {
  readonly toSeq: number
  readonly day: number
}

export class DayCloser {
  readonly #parts: DayCloserParts
  readonly #transfersAtOnce: number
  /** The open day of the last sweep: all days before it are closed. */
  #doneTo = 0
  /** When it began to work, after its last rest. */
  #sinceMs = 0
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
    // Not "before it": the clock may have been ahead then.
    if (openDay === this.#doneTo) return
    /** The accounts whose last closed day is in the future, and that day. */
    const ahead = new Map<number, number>()
    this.#sinceMs = performance.now()
    for (let after: number | null = 0; after !== null && !this.#isClosed; ) {
      const page: QueryResult<'accountsWithOpenDays'> = await queries.query('accountsWithOpenDays', {
        after,
        limit: ACCOUNTS_AT_ONCE,
      })
      await this.#rest()
      for (const accountId of page.ids) {
        if (this.#isClosed) return
        const lastDay = await this.#closeAccount(accountId, openDay)
        if (lastDay > openDay) ahead.set(accountId, lastDay)
        await this.#rest()
      }
      after = page.next
    }
    if (this.#isClosed) return
    this.#doneTo = openDay
    refuseAhead(ahead)
  }

  /** Ends a running sweep after its next piece. */
  close(): void {
    this.#isClosed = true
  }

  /** What it computes, it computes on the thread that serves calls: it gets half of the time at most. */
  async #rest(): Promise<void> {
    await Bun.sleep(performance.now() - this.#sinceMs)
    this.#sinceMs = performance.now()
  }

  /** Closes the days of an account before the one that is open. Returns the last day that was closed before. */
  async #closeAccount(accountId: number, openDay: number): Promise<number> {
    const { queries } = this.#parts
    const last = await queries.query('lastClosedDay', { accountId })
    const lastDay = last?.day ?? -1
    // The audit has found that its last transfer is gone: there is nothing that a new row could be chained to.
    if (last !== null && last.lastSeq === null) return lastDay
    let seq = last?.lastSeq ?? 0
    let before: DayBefore = {
      balance: BigInt(last?.balance ?? 0),
      hash: last === null ? NO_HASH : Buffer.from(last.hash, 'hex'),
    }
    let previous = last?.hash ?? null
    let earliest = lastDay + 1
    let day: DayHash | undefined
    const nowMs = this.#parts.dateMs()
    let future: FutureLines = { toSeq: 0, day: 0 }
    for (;;) {
      if (this.#isClosed) return lastDay
      const lines = await queries.query('transfersAfter', { accountId, seq, limit: this.#transfersAtOnce })
      for (const [at, line] of lines.entries()) {
        const isFuture = line.madeMs > nowMs
        if (isFuture && line.seq > future.toSeq) {
          future = await this.#placeFuture(accountId, lines.slice(at), nowMs)
          if (this.#isClosed) return lastDay
        }
        const ofLine = Math.max(isFuture ? future.day : dayOfMs(line.madeMs), earliest)
        if (day !== undefined && ofLine > day.day) {
          const closed = await this.#write(accountId, day, previous)
          if (closed === undefined) return lastDay
          before = closed
          previous = closed.hash.toString('hex')
          day = undefined
        }
        if (ofLine >= openDay) return lastDay
        earliest = ofLine
        day ??= new DayHash(accountId, ofLine, before)
        day.add(line)
        seq = line.seq
      }
      if (lines.length < this.#transfersAtOnce) break
      await this.#rest()
    }
    if (day !== undefined) await this.#write(accountId, day, previous)
    return lastDay
  }

  /** Finds where lines belong that are dated in the future. `lines` begins with the first of them. */
  async #placeFuture(accountId: number, lines: readonly DayLine[], nowMs: number): Promise<FutureLines> {
    for (let page = lines; page.length > 0 && !this.#isClosed; ) {
      const dated = page.find(({ madeMs }) => madeMs <= nowMs)
      if (dated !== undefined) return { toSeq: dated.seq, day: dayOfMs(dated.madeMs) }
      await this.#rest()
      const after = { accountId, seq: page.at(-1)!.seq, limit: this.#transfersAtOnce }
      page = await this.#parts.queries.query('transfersAfter', after)
    }
    return { toSeq: Number.POSITIVE_INFINITY, day: Number.POSITIVE_INFINITY }
  }

  /** Undefined where another process has written the row. */
  async #write(accountId: number, ended: DayHash, previous: string | null): Promise<DayBefore | undefined> {
    const { hash, balance, ...row } = ended.end()
    const input = { accountId, ...row, balance: String(balance), hash: hash.toString('hex'), previous }
    const { done } = await this.#parts.writer.run('closeDay', input)
    return done === 'closed' ? { balance, hash } : undefined
  }
}

/** `ahead`: accounts and their last closed days, which are in the future. */
function refuseAhead(ahead: ReadonlyMap<number, number>): void {
  const [first] = ahead
  if (first === undefined) return
  const [account, day] = [textId('acc', first[0]), dayText(first[1])]
  const others = ahead.size === 1 ? '' : `, and those of ${ahead.size - 1} more accounts wait likewise`
  throw new Error(
    `account ${account} gets no daily hashes until ${day} is over, because a clock that was ahead has closed that day${others}`,
  )
}
