// The hash of the transfers of one account and one day: SHA-256 of the hash of the day before (32 bytes, zeros for the first
// day) and of a text. The text has one line for the account and the day, and one for each transfer in the order of the
// ledger: its line of the statement as a JSON array, with the values in the order of the columns of the CSV file.

import type { Hash } from 'node:crypto'
import { createHash } from 'node:crypto'
import { textId } from '../../base/ids.ts'
import { DAY_MS, timeText } from '../../base/time.ts'
import type { StatementView } from './statement-text.ts'
import { formatStatementLine, statementColumns } from './statement-text.ts'

/** The hash before the first day of an account. */
export const NO_HASH = Buffer.alloc(32)

/** The days of UTC since 1970. */
export const dayOfMs = (ms: number): number => Math.floor(ms / DAY_MS)

/** `2026-03-31` */
export const dayText = (day: number): string => timeText(day * DAY_MS).slice(0, 10)

/** A transfer, without the balance after it. */
export interface DayLine extends Omit<StatementView, 'balance'> {
  readonly seq: number
}

/** The last day of an account that has a row. */
export interface ClosedDay {
  readonly day: number
  /** Nano-USD in decimal digits. */
  readonly balance: string
  /** Hex. */
  readonly hash: string
  /** The place of its last transfer in the ledger; null if this transfer does not exist any more. */
  readonly lastSeq: number | null
}

export interface HashedDay {
  readonly day: number
  readonly transfers: number
  readonly balance: bigint
  readonly lastKind: string
  readonly lastRef: number
  readonly hash: Buffer
}

/** What a day is chained to. */
export interface DayBefore {
  readonly balance: bigint
  readonly hash: Buffer
}

/** Hashes the transfers of one day, as many at a time as one likes. */
export class DayHash {
  readonly day: number
  readonly #hash: Hash
  #transfers = 0
  #balance: bigint
  #last: DayLine | undefined

  constructor(accountId: number, day: number, before: DayBefore) {
    this.day = day
    this.#balance = before.balance
    this.#hash = createHash('sha256').update(before.hash)
    this.#hash.update(`${JSON.stringify([textId('acc', accountId), dayText(day)])}\n`)
  }

  get transfers(): number {
    return this.#transfers
  }

  add(line: DayLine): void {
    this.#transfers++
    this.#balance += BigInt(line.amount)
    this.#last = line
    const shown = formatStatementLine({ ...line, balance: String(this.#balance) })
    this.#hash.update(`${JSON.stringify(statementColumns.map(column => shown[column]))}\n`)
  }

  /** At least one transfer must have been added. */
  end(): HashedDay {
    const { kind, ref } = this.#last!
    return {
      day: this.day,
      transfers: this.#transfers,
      balance: this.#balance,
      lastKind: kind,
      lastRef: ref,
      hash: this.#hash.digest(),
    }
  }
}
