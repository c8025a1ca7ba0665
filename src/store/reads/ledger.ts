// Reading the ledger: the statement of an account with the balance after each line, and what all balances come to.

import type { Database } from 'bun:sqlite'
import { OPERATOR_ID_MAX } from '../operator-accounts.ts'
import type { StatementCursor, StatementLine } from '../statement.ts'
import { statementPage } from '../statement.ts'
import { findOne } from './paging.ts'
import type { Scope } from './paging.ts'
import { money, text } from './values.ts'

export interface StatementRead {
  readonly accountId: number
  readonly scope: Scope | null
  readonly kind?: string | undefined
  readonly from?: number | undefined
  readonly before?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export interface StatementView {
  readonly kind: string
  /** Null for what stands for several. */
  readonly ref: number | null
  /** Nano-USD in decimal digits, negative where it went away. */
  readonly amount: string
  /** After it; null where lines between are not shown. */
  readonly balance: string | null
  readonly otherId: number | null
  readonly madeMs: number | null
  readonly reference: string | null
  readonly author: string | null
}

export interface StatementTold {
  readonly lines: readonly StatementView[]
  readonly next: string | null
}

export interface TrialRow {
  readonly kind: string
  readonly accounts: number
  readonly balance: string
  readonly held: string
}

export interface TrialBalance {
  readonly operators: readonly { readonly id: number; readonly name: string; readonly balance: string }[]
  readonly customers: readonly TrialRow[]
  /** Of all balances; zero, or the books do not agree. */
  readonly sum: string
  /** The transfer that it is as of. */
  readonly transfers: number
}

export interface LedgerReads {
  /** Null where there is no such account, or it is not theirs. */
  statement: { input: StatementRead; result: StatementTold | null }
  trialBalance: { input: Record<string, never>; result: TrialBalance }
}

const accountPlan = {
  from: 'account a',
  columns: { balance: ['a.balance', money], kind: ['a.kind', text] },
  id: 'a.id',
  account: 'a.id',
} as const

export const ledgerReads = (db: Database) => ({
  statement: (ask: StatementRead) => db.transaction(() => readStatement(db, ask))(),
  trialBalance: () => db.transaction(() => readTrialBalance(db))(),
})

interface Place extends StatementCursor {
  readonly upTo: number
  /** After the next line, as far as it is known. */
  readonly balance: string | null
}

/** What a charge stands under whose call's record is no longer kept. */
export const UNLISTED = 'unlisted_charges'

function readStatement(db: Database, ask: StatementRead): StatementTold | null {
  const { accountId, scope, kind, from: fromMs, before: beforeMs, limit } = ask
  const account = findOne(db, accountPlan, { id: accountId, scope })
  if (account === undefined) return null
  const isCounted = kind === undefined && beforeMs === undefined
  const place = ask.after === undefined ? topOf(db, isCounted ? account.balance : null) : readPlace(ask.after)
  if (place === undefined) return { lines: [], next: null }
  const { upTo } = place
  const { lines, next } = statementPage(db, { accountId, limit, cursor: place, upTo, kind, fromMs, beforeMs })
  const deletedMs = deletedBeforeMs(db, accountId)
  let balance = place.balance
  const told = lines.map((line): StatementView => {
    const view = viewOf(line, accountId, line.atMs < deletedMs ? null : balance)
    balance = balance === null ? null : String(BigInt(balance) - BigInt(view.amount))
    return view
  })
  if (next !== undefined) return { lines: told, next: writePlace({ ...next, upTo, balance }) }
  const isWhole = isCounted && fromMs === undefined && balance !== null && balance !== '0'
  return { lines: isWhole ? [...told, unlisted(balance!)] : told, next: null }
}

const DAY_MS = 86_400_000

/** Before it, charges may be missing between two lines, and what the balance was then is not known. */
function deletedBeforeMs(db: Database, accountId: number): number {
  const row = db.query('SELECT max(day) AS day FROM deleted_sum WHERE account_id = ?1 AND cost > 0').get(accountId)
  const { day } = row as { day: bigint | null }
  return day === null ? 0 : (Number(day) + 1) * DAY_MS
}

const topOf = (db: Database, balance: string | null): Place => {
  const { last } = db.query('SELECT coalesce(max(seq), 0) AS last FROM transfer').get() as { last: bigint }
  return { beforeSeq: Number.MAX_SAFE_INTEGER, beforeCall: Number.MAX_SAFE_INTEGER, upTo: Number(last), balance }
}

function viewOf(line: StatementLine, accountId: number, balance: string | null): StatementView {
  const receives = Number(line.credit) === accountId
  return {
    kind: line.kind,
    ref: Number(line.ref),
    amount: `${receives ? '' : '-'}${line.amount}`,
    balance,
    otherId: Number(receives ? line.debit : line.credit),
    madeMs: line.atMs,
    reference: line.reference,
    author: line.author,
  }
}

/** Whatever the lines do not come to. */
const unlisted = (balance: string): StatementView => ({
  ...{ kind: UNLISTED, ref: null, amount: balance, balance, otherId: null, madeMs: null },
  ...{ reference: null, author: null },
})

const writePlace = ({ beforeSeq, beforeCall, upTo, balance }: Place): string =>
  Buffer.from(JSON.stringify([beforeSeq, beforeCall, upTo, balance])).toString('base64url')

/** One from which lines can be taken, and it is still money. */
const isBalance = (text: string): boolean =>
  /^-?\d{1,19}$/.test(text) && BigInt(text.replace('-', '')) < 2n ** 62n

/** Undefined for what we never wrote. */
function readPlace(text: string): Place | undefined {
  try {
    const [beforeSeq, beforeCall, upTo, balance] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[]
    if (![beforeSeq, beforeCall, upTo].every(Number.isSafeInteger)) return undefined
    if (balance !== null && !isBalance(String(balance))) return undefined
    return { beforeSeq, beforeCall, upTo, balance } as Place
  } catch {
    return undefined
  }
}

interface Sums {
  readonly kind: string
  readonly n: bigint
  readonly whole: bigint
  readonly rest: bigint
  readonly held: bigint
  readonly held_rest: bigint
}

const BILLION = 1_000_000_000n

/** In two parts each: a sum of all that accounts may hold has no place in 64 bits. */
function readTrialBalance(db: Database): TrialBalance {
  const sums = db
    .query(
      `SELECT kind, count(*) AS n, sum(balance / 1000000000) AS whole, sum(balance % 1000000000) AS rest,
         sum(held / 1000000000) AS held, sum(held % 1000000000) AS held_rest
       FROM account WHERE id > ?1 GROUP BY kind ORDER BY kind DESC`,
    )
    .all(OPERATOR_ID_MAX) as Sums[]
  const own = db.query('SELECT id, name, balance FROM account WHERE id <= ?1 ORDER BY id').all(OPERATOR_ID_MAX) as {
    id: bigint
    name: string
    balance: bigint
  }[]
  const { last } = db.query('SELECT coalesce(max(seq), 0) AS last FROM transfer').get() as { last: bigint }
  const balanceOf = ({ whole, rest }: Sums): bigint => whole * BILLION + rest
  const sum = sums.reduce((all, row) => all + balanceOf(row), own.reduce((all, row) => all + row.balance, 0n))
  return {
    operators: own.map(({ id, name, balance }) => ({ id: Number(id), name, balance: String(balance) })),
    customers: sums.map(row => ({
      kind: row.kind,
      accounts: Number(row.n),
      balance: String(balanceOf(row)),
      held: String(row.held * BILLION + row.held_rest),
    })),
    sum: String(sum),
    transfers: Number(last),
  }
}
