// The statement of an account: its transfers in the order of the ledger (`seq`), newest first, page by page. Each line
// has the balance after its transfer. A filter hides lines, but their transfers are still read: order and balances do
// not depend on the filter.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { sqlList } from '../tables/columns.ts'
import { transferColumns } from '../tables/records.ts'
import { IN_TRANSFER_TAIL } from './late-indexes.ts'
import { REVENUE } from './operator-accounts.ts'

/** The most transfers that one page of a filtered statement reads. */
export const ROWS_READ_PER_PAGE_MAX = 10_000

interface TransferLine {
  readonly kind: string
  readonly ref: bigint
  readonly debit: bigint
  readonly credit: bigint
  readonly amount: bigint
  readonly madeMs: number
  readonly reference: string | null
  readonly author: string | null
}

export interface StatementLine extends TransferLine {
  readonly seq: number
  /** The balance of the account after this transfer. */
  readonly balance: bigint
}

/** Where a page begins. */
export interface StatementCursor {
  /** The page has the transfers before this one. */
  readonly beforeSeq: number
  /** The balance before that transfer. */
  readonly balance: bigint
}

export interface StatementRequest {
  readonly accountId: number
  readonly limit: number
  readonly cursor: StatementCursor
  readonly kind?: string | undefined
  readonly fromMs?: number | undefined
  readonly beforeMs?: number | undefined
}

export interface StatementPage {
  readonly lines: readonly StatementLine[]
  /** Where the next page begins. A page can be short, or empty, and still have a next one. */
  readonly next: StatementCursor | undefined
}

export type RawTransfer = Record<string, bigint | string | null>

export const STATEMENT_COLUMNS = `seq, ${sqlList(transferColumns)}`

/** The transfers that are not charges of customers, which the revenue account gets. */
const RECEIVED = `SELECT ${STATEMENT_COLUMNS} FROM transfer WHERE credit = ?1 AND kind <> 'charge' AND seq < ?2`

export const accountStatementSql = {
  sqlite: `
    SELECT ${STATEMENT_COLUMNS} FROM transfer_index CROSS JOIN transfer USING (seq) WHERE account_id = ?1 AND seq < ?2
    UNION ALL
    SELECT ${STATEMENT_COLUMNS} FROM transfer WHERE ${IN_TRANSFER_TAIL} AND debit = ?1 AND seq < ?2
    UNION ALL ${RECEIVED} ORDER BY seq DESC LIMIT ?3`,
  postgres: `
    SELECT ${STATEMENT_COLUMNS} FROM transfer WHERE debit = ?1 AND seq < ?2
    UNION ALL ${RECEIVED} ORDER BY seq DESC LIMIT ?3`,
}

/** Nearly all transfers belong to the revenue account, so its statement reads the whole table. */
export const revenueStatementSql = `
  SELECT ${STATEMENT_COLUMNS} FROM transfer WHERE ?1 = ${REVENUE} AND seq < ?2 ORDER BY seq DESC LIMIT ?3`

const accountStatement = query<RawTransfer>(accountStatementSql)
const revenueStatement = query<RawTransfer>(revenueStatementSql)

/** The cursor of the newest page. The balance must be read in the same transaction as the page. */
export const newestCursor = (balance: bigint): StatementCursor => ({ beforeSeq: Number.MAX_SAFE_INTEGER, balance })

export function* readStatementPage(ask: StatementRequest): Steps<StatementPage> {
  const { accountId, limit, cursor } = ask
  const isFiltered = ask.kind !== undefined || ask.fromMs !== undefined || ask.beforeMs !== undefined
  const rowsMax = isFiltered ? ROWS_READ_PER_PAGE_MAX : limit
  const statement = accountId === REVENUE ? revenueStatement : accountStatement
  const rows = yield* statement.all(accountId, cursor.beforeSeq, rowsMax + 1)
  const lines: StatementLine[] = []
  let { beforeSeq, balance } = cursor
  let rowsRead = 0
  for (const row of rows.slice(0, rowsMax)) {
    if (lines.length === limit) break
    const line = { ...readTransferLine(row), seq: Number(row.seq), balance }
    if (isShown(line, ask)) lines.push(line)
    balance -= effectOf(line, accountId)
    beforeSeq = line.seq
    rowsRead++
  }
  return { lines, next: rowsRead < rows.length ? { beforeSeq, balance } : undefined }
}

/** What a transfer adds to the balance of an account. */
function effectOf({ debit, credit, amount }: TransferLine, accountId: number): bigint {
  if (Number(credit) === accountId) return amount
  return Number(debit) === accountId ? -amount : 0n
}

function isShown(line: TransferLine, { accountId, kind, fromMs = 0, beforeMs = Infinity }: StatementRequest): boolean {
  if (effectOf(line, accountId) === 0n || (kind !== undefined && line.kind !== kind)) return false
  return line.madeMs >= fromMs && line.madeMs < beforeMs
}

export function readTransferLine(row: RawTransfer): TransferLine {
  return {
    kind: row.kind as string,
    ref: row.ref as bigint,
    debit: row.debit as bigint,
    credit: row.credit as bigint,
    amount: row.amount as bigint,
    madeMs: Number(row.made_ms),
    reference: row.reference as string | null,
    author: row.author as string | null,
  }
}
