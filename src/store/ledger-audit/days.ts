// The part of an audit that checks the daily hashes: the transfers of each closed day must be those that were hashed at its
// end. Each row is checked once; one that is wrong is checked again in later passes until it is right, and is reported until
// then.
//
// The rows may be millions, and a day may have millions of transfers. A pass that must end soon stops between two slices, and
// the next one goes on there. Which rows were checked is known until the process ends: so each start checks all days again,
// as nothing else does but a full audit.

import { hintOf } from '../../base/hints.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { findClosedDay, readTransfersAfter } from '../ledger/closed-days.ts'
import type { HashedDay } from '../ledger/daily-hash.ts'
import { DayHash, dayText, NO_HASH } from '../ledger/daily-hash.ts'
import type { AuditFinding } from './findings.ts'
import { createFinding } from './findings.ts'

interface DayRow {
  readonly seq: bigint
  readonly account_id: bigint
  readonly day: bigint
  readonly transfers: bigint
  readonly balance: bigint
  readonly last_kind: string
  readonly last_ref: bigint
  readonly hash: Uint8Array
}

/** Runs steps that all see the same state of the database. */
type Read = <T>(steps: Steps<T>) => T | Promise<T>

export interface DaysOptions {
  readonly read: Read
  /** Called after each slice, with how long it took. */
  rest(tookMs: number): Promise<void>
  /** Changed only by tests. */
  readonly nowMs?: () => number
}

/** A pass that reaches one of these leaves the rest to the next one. */
export interface DaysLimits {
  readonly transfersMax: number
  readonly msMax: number
}

/** Without limits, a pass checks everything. */
export const NO_LIMITS: DaysLimits = { transfersMax: Number.POSITIVE_INFINITY, msMax: Number.POSITIVE_INFINITY }

const COLUMNS = 'seq, account_id, day, transfers, balance, last_kind, last_ref, hash'
const findRows = query<DayRow>(`SELECT ${COLUMNS} FROM daily_hash WHERE seq > ?1 ORDER BY seq LIMIT ?2`)
const findRow = query<DayRow>(`SELECT ${COLUMNS} FROM daily_hash WHERE seq = ?1`)

const ROWS_AT_ONCE = 500
/** The most transfers of a slice. On PostgreSQL they are hashed on the thread that serves calls: it takes some milliseconds. */
const TRANSFERS_AT_ONCE = 500

/** Checks of rows, in slices. Each gives how many transfers it has read. */
type Slices<T = void> = AsyncGenerator<number, T>

interface Compared {
  /** What is wrong. */
  readonly code: 'found_day' | 'found_day_before' | undefined
  /** How many transfers the last slice has read. */
  readonly transfers: number
}

export class AuditDays {
  readonly #options: DaysOptions
  readonly #nowMs: () => number
  #checkedTo = 0n
  readonly #wrong = new Map<bigint, AuditFinding>()
  /** What the last pass has left. Undefined: nothing. */
  #ofWrong: Slices | undefined
  #ofNew: Slices | undefined

  constructor(options: DaysOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? (() => performance.now())
  }

  /** Whether the next pass finds the same, unless something is written. */
  get isDone(): boolean {
    return this.#ofNew === undefined && this.#wrong.size === 0
  }

  async check({ transfersMax, msMax }: DaysLimits): Promise<readonly AuditFinding[]> {
    const startMs = this.#nowMs()
    // In half of the time, so that rows which stay wrong do not keep the others from being checked.
    this.#ofWrong = await this.#run(this.#ofWrong ?? this.#checkWrong(), transfersMax / 2, startMs + msMax / 2)
    this.#ofNew = await this.#run(this.#ofNew ?? this.#checkNew(), transfersMax, startMs + msMax)
    return [...this.#wrong.values()]
  }

  /** Runs slices, at least one. Returns what is left, or undefined after the last one. */
  async #run(slices: Slices, transfersMax: number, endMs: number): Promise<Slices | undefined> {
    let read = 0
    do {
      const startMs = performance.now()
      const slice = await slices.next()
      if (slice.done) return undefined
      read += slice.value
      await this.#options.rest(performance.now() - startMs)
    } while (read < transfersMax && this.#nowMs() < endMs)
    return slices
  }

  async *#checkWrong(): Slices {
    for (const seq of [...this.#wrong.keys()]) {
      const row = await this.#options.read(findRow.get(seq))
      if (row === undefined) this.#wrong.delete(seq)
      else yield* this.#checkRow(row)
    }
  }

  async *#checkNew(): Slices {
    for (;;) {
      const rows = await this.#options.read(findRows.all(this.#checkedTo, ROWS_AT_ONCE))
      if (rows.length === 0) return
      for (const row of rows) {
        yield* this.#checkRow(row)
        this.#checkedTo = row.seq
      }
    }
  }

  /** Notes whether the row is wrong. */
  async *#checkRow(row: DayRow): Slices {
    const { code, transfers } = yield* this.#compareRow(row)
    if (code === undefined) this.#wrong.delete(row.seq)
    else {
      const day = dayText(Number(row.day))
      const found = { check: 'day', owner: row.account_id, key: day, hint: hintOf(code, { day }) } as const
      this.#wrong.set(row.seq, createFinding(found))
    }
    yield transfers
  }

  async *#compareRow(row: DayRow): Slices<Compared> {
    const { read } = this.#options
    const [accountId, day, transfers] = [Number(row.account_id), Number(row.day), Number(row.transfers)]
    const limitAfter = (hashed: number): number => Math.min(TRANSFERS_AT_ONCE, transfers - hashed)
    // In one snapshot, because each costs some round trips, and most days of most accounts have few transfers.
    const first = await read(
      (function* () {
        const previous = yield* findClosedDay(accountId, day)
        if (previous !== null && previous.lastSeq === null) return undefined
        return { previous, lines: yield* readTransfersAfter(accountId, previous?.lastSeq ?? 0, limitAfter(0)) }
      })(),
    )
    if (first === undefined) return { code: 'found_day_before', transfers: 0 }
    const { previous } = first
    const hashed = new DayHash(accountId, day, {
      balance: BigInt(previous?.balance ?? 0),
      hash: previous === null ? NO_HASH : Buffer.from(previous.hash, 'hex'),
    })
    for (let { lines } = first; ; ) {
      const isShort = lines.length < limitAfter(hashed.transfers)
      if (isShort) return { code: 'found_day', transfers: lines.length }
      for (const line of lines) hashed.add(line)
      if (hashed.transfers === transfers) return { code: compare(row, hashed.end()), transfers: lines.length }
      yield lines.length
      lines = await read(readTransfersAfter(accountId, lines.at(-1)!.seq, limitAfter(hashed.transfers)))
    }
  }
}

function compare(row: DayRow, found: HashedDay): Compared['code'] {
  const isSame = found.hash.equals(row.hash) && found.balance === row.balance
  const isSameLast = found.lastKind === row.last_kind && BigInt(found.lastRef) === row.last_ref
  return isSame && isSameLast ? undefined : 'found_day'
}
