// Random records, refunds and prices, to be inserted into both databases.

import type { Database } from 'bun:sqlite'
import { idAtMs } from '../../src/base/ids.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { randomFrom } from '../support/chance.ts'

export type TestRow = Readonly<Record<string, string | number | null>>

export interface RandomRecords {
  readonly seed: number
  readonly count: number
  /** The times of the calls. */
  readonly fromMs: number
  readonly beforeMs: number
  readonly endUsers?: number
  readonly accounts?: readonly number[]
}

const lineRates = { input: '2.00', cacheRead: '0.50', cacheWrite: '2.50', output: '8.00' }

const everyAccount = [11, 12, 13]

export function randomRecords(ask: RandomRecords): TestRow[] {
  const { seed, count, fromMs, beforeMs, endUsers = 5, accounts = everyAccount } = ask
  const below = randomFrom(seed)
  const pick = <T>(...values: readonly T[]): T => values[below(values.length)]!
  return Array.from({ length: count }, (_, at) => {
    const account = pick(...accounts)
    const model = pick('plain', 'own', 'none', null)
    const outcome = pick('completed', 'completed', 'client_left', 'upstream_failed', 'refused')
    const ms = fromMs + Math.floor(((beforeMs - fromMs) * below(1_000_000)) / 1_000_000)
    const lines = Object.entries(lineRates).map(([what, rate]) => [what, below(9_000), rate])
    return {
      call_id: idAtMs(ms) + (at % 8_000),
      key_id: account + pick(10, 20),
      account_id: account,
      dialect: 'openai-chat',
      provider: model === null ? null : pick('p', 'q'),
      model,
      channel: pick('p#1', 'p#2', null),
      status: 200,
      error: outcome === 'completed' ? null : pick('e1', 'e2', null),
      outcome,
      rule: 'x',
      usage_source: 'reported',
      streamed: below(2),
      input_tokens: below(1_000),
      cache_read_tokens: below(100),
      cache_write_tokens: below(100),
      output_tokens: below(1_000),
      reasoning_tokens: below(50),
      cost: below(1_000_000_000) * pick(0, 1, 1_000_000),
      shortfall: pick(0, 0, below(1_000)),
      held: 0,
      price_version: pick(null, 1_001, 1_002, 1_003),
      lines: pick(null, 'no JSON', JSON.stringify(lines), JSON.stringify(lines)),
      first_ms: pick(null, below(5_000)),
      duration_ms: below(100_000),
      end_user: pick(null, `Ü${below(endUsers)}`),
    }
  })
}

/** Refunds of about a tenth of the records. */
export const refundsOf = (records: readonly TestRow[]): TestRow[] =>
  records
    .filter((_, at) => at % 10 === 3)
    .map(({ call_id, account_id }, at) => ({
      ref: call_id!,
      kind: 'refund',
      debit: 1,
      credit: account_id!,
      amount: 100 + at,
      made_ms: 1,
    }))

const shipped = '{"input":"2","output":"8","cacheRead":"0.5","cacheWrite":"2.5"}'
const dearer = '{"input":"3","output":"10","cacheRead":"1","cacheWrite":"4"}'
export const prices: readonly TestRow[] = [
  { version: 1_001, model: 'p/plain', origin: 'shipped', price: shipped, author: 'x', made_ms: 1 },
  { version: 1_002, model: 'p/own', origin: 'shipped', price: shipped, author: 'x', made_ms: 1 },
  { version: 1_003, model: 'p/own', origin: 'operator', price: dearer, author: 'x', made_ms: 2 },
]

/** Accounts 11 to 13, two keys of each account, and a person who is a member of two accounts, as statements of SQL. */
export function ownerRows(bytes: (hex: string) => string): string {
  const keys = everyAccount.flatMap(account => [account + 10, account + 20].map(id => ({ id, account })))
  return `
    INSERT INTO account (id, name, kind, created_ms) VALUES
      ${everyAccount.map(id => `(${id}, 'account ${id}', 'prepaid', 1)`)};
    INSERT INTO api_key (id, digest, suffix, name, account_id, tier, created_ms) VALUES
      ${keys.map(({ id, account }) => `(${id}, ${bytes(String(id).repeat(32))}, 'x', 'key ${id}', ${account}, 'pro', 1)`)};
    INSERT INTO person (id, email, name, role, created_ms) VALUES (31, 'a@x', 'a', 'member', 1);
    INSERT INTO member (account_id, person_id, rank, added_ms) VALUES (11, 31, 1, 1), (12, 31, 2, 1);`
}

export type FilledTable = 'record' | 'transfer' | 'price'

export function insertIntoSqlite(db: Database, table: FilledTable, rows: readonly TestRow[]): void {
  const columns = Object.keys(rows[0]!)
  const insert = db.query(`INSERT INTO ${table} (${columns}) VALUES (${columns.map(() => '?')})`)
  db.transaction(() => {
    for (const row of rows) insert.run(...Object.values(row))
  })()
}

/** In one transaction. */
export async function insertIntoPostgres(
  pool: PostgresPool,
  table: FilledTable,
  rows: readonly TestRow[],
): Promise<void> {
  const columns = Object.keys(rows[0]!)
  const insert = postgresQuery(
    `INSERT INTO ${table} (${columns})
     SELECT ${columns} FROM json_populate_recordset(NULL::public.${table}, CAST(CAST($1 AS TEXT) AS JSON))`,
  )
  await pool.transact(insert.run(JSON.stringify(rows)))
}
