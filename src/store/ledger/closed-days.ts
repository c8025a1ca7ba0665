// Reads what the daily hashes of an account are made of: its last day that has one, and the transfers after it.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { ClosedDay, DayLine } from './daily-hash.ts'
import { IN_TRANSFER_TAIL } from './late-indexes.ts'
import type { RawTransfer } from './statement.ts'
import { readTransferLine, STATEMENT_COLUMNS } from './statement.ts'
import { viewOfLine } from './statement-text.ts'

/** After all days. */
export const LAST_DAY = Number.MAX_SAFE_INTEGER

const RECEIVED = `SELECT ${STATEMENT_COLUMNS} FROM transfer WHERE credit = ?1 AND kind <> 'charge' AND seq > ?2`

/** In the order of the ledger: the same transfers as in the statement, from the oldest on. */
const transfersAfter = query<RawTransfer>({
  sqlite: `
    SELECT ${STATEMENT_COLUMNS} FROM transfer_index CROSS JOIN transfer USING (seq) WHERE account_id = ?1 AND seq > ?2
    UNION ALL
    SELECT ${STATEMENT_COLUMNS} FROM transfer WHERE ${IN_TRANSFER_TAIL} AND debit = ?1 AND seq > ?2
    UNION ALL ${RECEIVED} ORDER BY seq LIMIT ?3`,
  // Each part has an order that only its index gives, and a limit. Else PostgreSQL would sort all later transfers of the
  // account, or read those of all accounts, for each slice.
  postgres: `
    (SELECT ${STATEMENT_COLUMNS} FROM transfer WHERE (debit, seq) > (?1, ?2) AND (debit, seq) < (CAST(?1 AS BIGINT) + 1, 0)
      ORDER BY debit, seq LIMIT ?3)
    UNION ALL
    (SELECT ${STATEMENT_COLUMNS} FROM transfer WHERE (credit, seq) > (?1, ?2) AND (credit, seq) < (CAST(?1 AS BIGINT) + 1, 0)
      AND kind <> 'charge' ORDER BY credit, seq LIMIT ?3)
    ORDER BY seq LIMIT ?3`,
})
const findDay = query<{ day: bigint; balance: bigint; last_kind: string; last_ref: bigint; hash: Uint8Array }>(
  `SELECT day, balance, last_kind, last_ref, hash FROM daily_hash WHERE account_id = ?1 AND day < ?2
   ORDER BY day DESC LIMIT 1`,
)
const findSeq = query<{ seq: bigint }>('SELECT seq FROM transfer WHERE ref = ?1 AND kind = ?2')

/** The next transfers of an account of a customer after this place in the ledger. */
export function* readTransfersAfter(accountId: number, seq: number, limit: number): Steps<readonly DayLine[]> {
  const rows = yield* transfersAfter.all(accountId, seq, limit)
  return rows.map(row => {
    const line = { ...readTransferLine(row), seq: Number(row.seq), balance: 0n }
    const { balance: _, ...view } = viewOfLine(line, accountId)
    return { ...view, seq: line.seq }
  })
}

/** The last closed day of an account before this one. */
export function* findClosedDay(accountId: number, beforeDay = LAST_DAY): Steps<ClosedDay | null> {
  const row = yield* findDay.get(accountId, beforeDay)
  if (row === undefined) return null
  const last = yield* findSeq.get(row.last_ref, row.last_kind)
  return {
    day: Number(row.day),
    balance: String(row.balance),
    hash: Buffer.from(row.hash).toString('hex'),
    lastSeq: last === undefined ? null : Number(last.seq),
  }
}
