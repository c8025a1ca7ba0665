// Queries for the daily hashes: the rows of an account, and what the job that writes them must read.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { findClosedDay, LAST_DAY, readTransfersAfter } from '../ledger/closed-days.ts'
import type { ClosedDay, DayLine } from '../ledger/daily-hash.ts'
import { NO_HASH } from '../ledger/daily-hash.ts'
import { OPERATOR_ID_MAX } from '../ledger/operator-accounts.ts'
import { number } from '../tables/columns.ts'
import type { Scope } from './paging.ts'
import { rowFinder } from './paging.ts'

export interface DailyHashView {
  readonly day: number
  readonly transfers: number
  /** Nano-USD in decimal digits. */
  readonly balance: string
  readonly lastKind: string
  readonly lastRef: number
  /** Hex. */
  readonly previousHash: string
  readonly hash: string
}

export interface DailyHashQueries {
  /** Newest first. Null where the account does not exist or is outside the scope. */
  dailyHashes: {
    input: {
      readonly accountId: number
      readonly scope: Scope | null
      /** Only days before this one. */
      readonly beforeDay?: number | undefined
      readonly limit: number
    }
    result: { readonly rows: readonly DailyHashView[]; readonly next: number | null } | null
  }
  /** Of the next accounts, those that have a transfer which no daily hash covers. `next` is null after the last account. */
  accountsWithOpenDays: {
    input: { readonly after: number; readonly limit: number }
    result: { readonly ids: readonly number[]; readonly next: number | null }
  }
  lastClosedDay: { input: { readonly accountId: number }; result: ClosedDay | null }
  /** The next transfers of an account in the order of the ledger. */
  transfersAfter: {
    input: { readonly accountId: number; readonly seq: number; readonly limit: number }
    result: readonly DayLine[]
  }
}

interface HashRow {
  readonly day: bigint
  readonly transfers: bigint
  readonly balance: bigint
  readonly last_kind: string
  readonly last_ref: bigint
  readonly hash: Uint8Array
}

const COLUMNS = 'day, transfers, balance, last_kind, last_ref, hash'

const findDays = query<HashRow>(
  `SELECT ${COLUMNS} FROM daily_hash WHERE account_id = ?1 AND day < ?2 ORDER BY day DESC LIMIT ?3`,
)
const findCustomers = query<{ id: bigint }>('SELECT id FROM account WHERE id > ?1 ORDER BY id LIMIT ?2')
const findAccount = rowFinder({ from: 'account a', columns: { id: ['a.id', number] }, id: 'a.id', account: 'a.id' })

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

export const dailyHashQueries = {
  *dailyHashes({ accountId, scope, beforeDay = LAST_DAY, limit }): Steps<DailyHashQueries['dailyHashes']['result']> {
    if ((yield* findAccount({ id: accountId, scope })) === null) return null
    const found = yield* findDays.all(accountId, beforeDay, limit + 1)
    const rows = found.slice(0, limit).map(
      (row, at): DailyHashView => ({
        day: Number(row.day),
        transfers: Number(row.transfers),
        balance: String(row.balance),
        lastKind: row.last_kind,
        lastRef: Number(row.last_ref),
        previousHash: hexOf(found[at + 1]?.hash ?? NO_HASH),
        hash: hexOf(row.hash),
      }),
    )
    return { rows, next: found.length > limit ? rows.at(-1)!.day : null }
  },
  *accountsWithOpenDays({ after, limit }): Steps<DailyHashQueries['accountsWithOpenDays']['result']> {
    const accounts = yield* findCustomers.all(Math.max(after, OPERATOR_ID_MAX), limit)
    const ids: number[] = []
    for (const { id } of accounts) {
      const seq = (yield* findClosedDay(Number(id)))?.lastSeq ?? 0
      if ((yield* readTransfersAfter(Number(id), seq, 1)).length > 0) ids.push(Number(id))
    }
    return { ids, next: accounts.length < limit ? null : Number(accounts.at(-1)!.id) }
  },
  lastClosedDay: ({ accountId }) => findClosedDay(accountId),
  transfersAfter: ({ accountId, seq, limit }) => readTransfersAfter(accountId, seq, limit),
} satisfies {
  readonly [Name in keyof DailyHashQueries]: (
    input: DailyHashQueries[Name]['input'],
  ) => Steps<DailyHashQueries[Name]['result']>
}
