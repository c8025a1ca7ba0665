// Every query has the same result on SQLite and on PostgreSQL, on the same rows: each list with each sort, each filter
// and each scope, page by page.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { textId } from '../../src/base/ids.ts'
import { DAY_MS } from '../../src/base/time.ts'
import type { RunSteps } from '../../src/store/engine/sqlite-steps.ts'
import { sqliteSteps } from '../../src/store/engine/sqlite-steps.ts'
import type { SqlValue, Steps } from '../../src/store/engine/steps.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { PostgresQueries, QUERIES_AT_ONCE } from '../../src/store/postgres/queries.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { writeCursor } from '../../src/store/queries/cursor.ts'
import type { FilterValue, ListQuery, Page, Scope } from '../../src/store/queries/paging.ts'
import { stepQueries } from '../../src/store/queries/queries.ts'
import type { RecordFilter } from '../../src/store/records/record-search.ts'
import type { TestBooks } from '../support/books.ts'
import { openTestBooks, recordOf } from '../support/books.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { runRandomOperations } from './random-rows.ts'

tellMissingPostgres()

const RECORDS = 60
const scopes: readonly (Scope | null)[] = [null, { actorId: 31, rank: 1 }, { actorId: 41, rank: 1 }]

interface ListCase {
  readonly sorts: readonly string[]
  /** A filter that is always set. */
  readonly always?: Readonly<Record<string, FilterValue>>
  /** Some values of each filter. */
  readonly filters?: Readonly<Record<string, readonly FilterValue[]>>
}

const flags = [true, false]
const names = ['a', 'AL', 'Ü', 'b%', '']
const accounts = [11, 12]
const times = [0, 5, Date.UTC(2026, 10, 15, 12) + 5_000, Number.MAX_SAFE_INTEGER]

const lists = {
  accounts: {
    sorts: ['created', 'name', 'balance'],
    filters: { name: names, type: ['team'], kind: ['prepaid'], frozen: flags },
  },
  keys: {
    sorts: ['created', 'name'],
    filters: {
      ...{ account: accounts, name: names, suffix: ['abcd'], tier: ['pro'], isRevoked: flags, isDisabled: flags },
      ...{ endsAfter: times, endsBy: times, from: [22], before: [22] },
    },
  },
  tiers: { sorts: ['name', 'qpm'] },
  limits: {
    sorts: ['id'],
    filters: { resource: ['requests'], key: [21], account: accounts, tier: ['pro'], model: ['m'] },
  },
  codes: {
    sorts: ['made'],
    filters: {
      ...{ batch: ['x'], account: accounts, redeemed: flags, voided: flags },
      ...{ expiredAt: times, openAt: times },
    },
  },
  people: {
    sorts: ['created', 'email', 'name'],
    filters: { email: ['A@', 'b'], name: names, role: ['member'], disabled: flags, removed: flags },
  },
  members: { sorts: ['added', 'email'], always: { account: 12 }, filters: { person: [31], rank: [1, 3] } },
  memberships: { sorts: ['added', 'name'], always: { person: 31 } },
  sessions: { sorts: ['made', 'seen'], filters: { person: [31, 32], ended: flags } },
  invitations: { sorts: ['made', 'expires'], filters: { account: accounts, email: ['F'], open: flags } },
  serviceTokens: {
    sorts: ['created', 'name'],
    filters: {
      ...{ account: accounts, creator: ['cli'], name: names, isRevoked: flags },
      ...{ endsAfter: times, endsBy: times },
    },
  },
  prices: { sorts: ['model'], filters: { model: ['M', 'x'], origin: ['operator'] } },
  priceHistory: { sorts: ['version'], filters: { model: ['m'] } },
  routes: { sorts: ['name', 'changed'], filters: { name: ['R'], policy: ['random'] } },
  webhooks: { sorts: ['created'], filters: { account: accounts, site: flags } },
  deliveries: { sorts: ['made'], filters: { webhook: [51, 52] } },
  auditLog: {
    sorts: ['seq'],
    filters: {
      ...{ actor: ['cli'], action: ['key.create'], target: ['KEY', 'acc'], account: accounts },
      ...{ from: times, before: times },
    },
  },
  rawAuditLog: { sorts: ['seq'], filters: { actor: ['cli'], account: accounts } },
  deletions: { sorts: ['id'] },
} as const satisfies Partial<Record<keyof typeof stepQueries, ListCase>>

type ListName = keyof typeof lists

describe.skipIf(!hasPostgres)('on both databases', () => {
  let books: TestBooks
  let server: TestPostgres
  let pool: PostgresPool
  let onSqlite: RunSteps

  beforeAll(async () => {
    books = openTestBooks({ sync: false })
    onSqlite = sqliteSteps(books.db)
    server = await startPostgres()
    pool = await server.open()
    await createSchema(pool)
    await runRandomOperations(books, pool, { seed: 3, operations: 1_000, without: /^(remove|revoke|end|forget)/ })
    for (let at = 0; at < RECORDS; at++) {
      const failure = at % 5 === 0 ? { outcome: 'refused', error: 'e5', status: 429 } : undefined
      const texts = { model: `m${at % 3}`, channel: `p#${at % 4}`, streamed: at % 2 === 0, ...failure }
      const record = {
        ...recordOf(100_000 + at, 11 + (at % 3)),
        ...texts,
        endUser: at % 7 === 0 ? 'u7' : null,
        conversation: at % 2 === 0 ? 'even' : null,
      }
      books.run.record({ record })
    }
    await copyTable('record')
  }, 120_000)
  afterAll(async () => {
    books.close()
    await server.stop()
  })

  async function copyTable(table: string): Promise<void> {
    for (const row of books.db.query(`SELECT * FROM ${table}`).all() as Record<string, SqlValue>[]) {
      const columns = Object.keys(row)
      const sql = `INSERT INTO ${table} (${columns}) VALUES (${columns.map((_, i) => `$${i + 1}`)})`
      await pool.transact(postgresQuery(sql).run(...Object.values(row)))
    }
  }

  async function compare(make: () => Steps<unknown>, clean = (result: unknown): unknown => result): Promise<unknown> {
    const expected = onSqlite(make())
    const found = await pool.read(make())
    expect(clean(JSON.parse(JSON.stringify(found)))).toEqual(clean(JSON.parse(JSON.stringify(expected))))
    return expected
  }

  function* allPages(name: ListName, ask: ListQuery & { readonly nowMs: number }): Steps<readonly unknown[]> {
    const rows: unknown[] = []
    for (let after: string | undefined; ; ) {
      const page: Page<unknown> = yield* stepQueries[name]({ ...ask, after })
      rows.push(...page.rows)
      if (page.next === null) return rows
      after = page.next
    }
  }

  /** Triggers write deliveries with the wall clock. */
  const withoutClock = (rows: unknown): unknown =>
    (rows as Record<string, unknown>[]).map(({ id: _id, madeMs: _made, dueMs: _due, ...row }) => row)

  test.each(Object.keys(lists) as ListName[])(
    'the list %s is the same',
    async name => {
      const { sorts, always = {}, filters = {} }: ListCase = lists[name]
      const values = Object.entries(filters).flatMap(([filter, some]) => some.map(value => ({ [filter]: value })))
      let most = 0
      for (const scope of scopes) {
        for (const sort of sorts) {
          for (const descending of flags) {
            for (const active of [{}, ...values, Object.assign({}, ...values)]) {
              const more = { nowMs: books.nowMs, countsKeys: true }
              const ask = { scope, filters: { ...always, ...active }, sort, descending, limit: 2, ...more }
              const rows = await compare(() => allPages(name, ask), name === 'deliveries' ? withoutClock : undefined)
              most = Math.max(most, (rows as readonly unknown[]).length)
            }
          }
        }
      }
      expect(most).toBeGreaterThan(0)
    },
    120_000,
  )

  const owned = ['account', 'key', 'serviceToken', 'webhook', 'balanceAlert', 'deletion', 'seesAccount'] as const
  test.each(owned)('one row of the query %s is the same', async name => {
    for (const scope of scopes)
      for (const id of [1, 11, 12, 13, 14, 21, 22, 23, 24, 41, 42, 51, 52, 53])
        await compare(() => stepQueries[name]({ id, scope }) as Steps<unknown>)
  })

  test('single rows without a scope are the same', async () => {
    for (const id of [1, 2, 3, 31, 32, 33])
      for (const name of ['me', 'person', 'invitation', 'limit'] as const)
        await compare(() => stepQueries[name]({ id, nowMs: books.nowMs }) as Steps<unknown>)
    for (const name of ['free', 'gold', 'r', 's', 'none']) {
      for (const countsKeys of flags) await compare(() => stepQueries.tier({ name, countsKeys }))
      await compare(() => stepQueries.route({ name }))
    }
    for (const model of ['m', 'n', 'none']) await compare(() => stepQueries.price({ model }))
    await compare(() => stepQueries.siteVersion({}))
    const ids = ['openai#1', 'openai#ch_a', 'openai', 'azure', 'none']
    await compare(() => stepQueries.channelNotes({ ids }))
    await compare(() => stepQueries.providerNotes({ ids }))
  })

  test('the search has the same hits', async () => {
    let most = 0
    for (const scope of scopes) {
      for (const text of [...names.slice(0, -1), 'abcd', 'x', 'pro', 'http', textId('acc', 11), textId('key', 21)]) {
        const ask = { scope, text, limit: 5 }
        most = Math.max(most, ((await compare(() => stepQueries.search(ask))) as unknown[]).length)
      }
    }
    expect(most).toBeGreaterThan(0)
  })

  test('budgets, batches and the check of the audit log are the same', async () => {
    for (const scope of scopes)
      for (const id of [11, 12, 21, 22])
        for (const of of ['key', 'account'] as const)
          await compare(() => stepQueries.budgets({ id, of, scope, nowMs: books.nowMs }))
    for (const after of ['', 'x', 'y']) await compare(() => stepQueries.codeBatches({ after, limit: 1 }))
    expect(await compare(() => stepQueries.checkAuditLog({}))).toMatchObject({ brokenAt: null })
  })

  test('a cursor that is none of ours is a mistake of the caller', async () => {
    const queries = new PostgresQueries(pool)
    const cursorOf = (value: string | bigint, id: string | bigint): string => writeCursor('changed', { value, id })
    const ask = { scope: null, filters: {}, sort: 'changed', descending: false, limit: 2 }
    for (const after of [cursorOf('x', 'y'), cursorOf(1n, 2n), cursorOf('\0', '\ud800')])
      await expect(queries.query('routes', { ...ask, after })).rejects.toMatchObject({ code: 'field_invalid' })
    expect(await queries.query('routes', { ...ask, after: cursorOf(1n, 'y') })).toHaveProperty('rows')
  })

  test('people take turns, and the staff has room of its own', async () => {
    const queries = new PostgresQueries(pool)
    const flood = Array.from({ length: bounds.queriesMax * 2 }, () => queries.query('tier', { name: 'pro' }, 31))
    const ended = Promise.allSettled(flood)
    const others = [queries.query('tier', { name: 'pro' }, 32), queries.query('tier', { name: 'pro' })]
    expect(await Promise.all(others)).toMatchObject([{ name: 'pro' }, { name: 'pro' }])
    const refused = (await ended).filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(flood.length - bounds.queriesOfPersonMax - QUERIES_AT_ONCE)
  })

  test('the trial balance and the statements are the same', async () => {
    await compare(
      () => stepQueries.trialBalance({}),
      result => ({ ...(result as object), transfers: 0 }),
    )
    // Of all records, and of none.
    for (const dateMs of [DAY_MS, Date.now() + DAY_MS]) await compare(() => stepQueries.ledgerInspection({ dateMs }))
    for (const scope of scopes)
      for (const accountId of [1, 2, 3, 4, 11, 12, 13, 14])
        for (const kind of [undefined, 'gift'])
          await compare(
            () => stepQueries.statement({ accountId, scope, kind, limit: 20 }),
            result => ({ ...(result as object), next: null }),
          )
  })

  const filters: readonly RecordFilter[] = [
    ...[{}, { from: 100_010, before: 100_030 }, { accountId: 11 }, { keyId: 1_012 }, { callId: 100_003 }],
    ...[{ endUser: 'u7' }, { model: { provider: 'p', name: 'm1' } }, { provider: 'p', channel: 'p#1' }],
    ...[{ outcome: ['refused'] }, { outcome: ['completed'] }, { status: 429 }, { error: 'e5' }, { streamed: true }],
    ...[
      { costMin: '0', costMax: '5' },
      { accountId: 12, status: 429 },
      { outcome: ['refused', 'completed'], dialect: 'openai-chat' },
      { tag: { name: 't' } },
      { tag: { name: 't', value: '1' } },
      { requestedModel: 'p/m1', lossy: false },
      { lossy: true },
      { keyId: 1_012, conversation: 'even' },
      { attemptsMin: 1 },
      { firstContentMsMin: 1, durationMsMin: 1 },
    ],
  ]
  test('searches in records are the same', async () => {
    let most = 0
    for (const scope of scopes)
      for (const filter of filters)
        for (const oldestFirst of flags)
          for (const after of [undefined, 100_020]) {
            const ask = { scope, filter, oldestFirst, after, limit: 7 }
            const page = (await compare(() => stepQueries.records(ask))) as { rows: readonly unknown[] }
            most = Math.max(most, page.rows.length)
            await compare(() => stepQueries.exportRecords({ ...ask, format: 'ndjson', staff: true, packed: null }))
          }
    expect(most).toBe(7)
    await compare(() => stepQueries.recordIds({ filter: { accountId: 11 }, limit: 5 }))
    for (const callId of [100_000, 7]) await compare(() => stepQueries.record({ callId, scope: null }))
  }, 120_000)
})
