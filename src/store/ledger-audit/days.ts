// The part of an audit that checks the daily hashes: the transfers of each closed day must be those that were hashed at its
// end. Each row is checked once; one that is wrong is checked again in every pass until it is right.

import { hintOf } from '../../base/hints.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { findClosedDay, readTransfersAfter } from '../ledger/closed-days.ts'
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
  /** The most transfers that one slice reads. */
  readonly sliceRows: number
  /** Called after each slice, with how long it took. */
  rest(tookMs: number): Promise<void>
}

const COLUMNS = 'seq, account_id, day, transfers, balance, last_kind, last_ref, hash'
const findRows = query<DayRow>(`SELECT ${COLUMNS} FROM daily_hash WHERE seq > ?1 ORDER BY seq LIMIT ?2`)
const findRow = query<DayRow>(`SELECT ${COLUMNS} FROM daily_hash WHERE seq = ?1`)

const ROWS_AT_ONCE = 500

export class AuditDays {
  readonly #options: DaysOptions
  #checkedTo = 0n
  #wrong = new Set<bigint>()
  #isBehind = false

  constructor(options: DaysOptions) {
    this.#options = options
  }

  /** Whether the next pass finds the same, unless something is written. */
  get isDone(): boolean {
    return !this.#isBehind && this.#wrong.size === 0
  }

  /** `transfersMax`: after so many transfers the pass leaves the other rows to the next one. */
  async check(transfersMax: number): Promise<readonly AuditFinding[]> {
    const findings: AuditFinding[] = []
    const note = (row: DayRow, finding: AuditFinding | undefined): void => {
      if (finding === undefined) return void this.#wrong.delete(row.seq)
      this.#wrong.add(row.seq)
      findings.push(finding)
    }
    for (const seq of [...this.#wrong]) {
      const row = await this.#options.read(findRow.get(seq))
      if (row === undefined) this.#wrong.delete(seq)
      else note(row, await this.#checkRow(row))
    }
    this.#isBehind = true
    for (let read = 0; read < transfersMax; ) {
      const rows = await this.#options.read(findRows.all(this.#checkedTo, ROWS_AT_ONCE))
      this.#isBehind = rows.length > 0
      if (rows.length === 0) break
      for (const row of rows) {
        note(row, await this.#checkRow(row))
        this.#checkedTo = row.seq
        read += Number(row.transfers)
        if (read >= transfersMax) break
      }
    }
    return findings
  }

  async #checkRow(row: DayRow): Promise<AuditFinding | undefined> {
    const { read, sliceRows, rest } = this.#options
    const [accountId, day, transfers] = [Number(row.account_id), Number(row.day), Number(row.transfers)]
    const wrong = (code: 'found_day' | 'found_day_before'): AuditFinding => {
      const hint = hintOf(code, { day: dayText(day) })
      return createFinding({ check: 'day', owner: row.account_id, key: dayText(day), hint })
    }
    const previous = await read(findClosedDay(accountId, day))
    if (previous !== null && previous.lastSeq === null) return wrong('found_day_before')
    const before = {
      balance: BigInt(previous?.balance ?? 0),
      hash: previous === null ? NO_HASH : Buffer.from(previous.hash, 'hex'),
    }
    const hashed = new DayHash(accountId, day, before)
    for (let seq = previous?.lastSeq ?? 0; hashed.transfers < transfers; ) {
      const limit = Math.min(sliceRows, transfers - hashed.transfers)
      const startMs = performance.now()
      const lines = await read(readTransfersAfter(accountId, seq, limit))
      for (const line of lines) hashed.add(line)
      if (lines.length < limit) return wrong('found_day')
      seq = lines.at(-1)!.seq
      await rest(performance.now() - startMs)
    }
    const found = hashed.end()
    const isSame = found.hash.equals(row.hash) && found.balance === row.balance
    const isSameLast = found.lastKind === row.last_kind && BigInt(found.lastRef) === row.last_ref
    return isSame && isSameLast ? undefined : wrong('found_day')
  }
}
