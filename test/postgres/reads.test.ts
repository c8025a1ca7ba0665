// The reads of calls and of sign-ins have the same results on SQLite and on PostgreSQL, on the same rows.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { callReads, keySnapshotReads } from '../../src/store/engine/reader.ts'
import type { RunSteps } from '../../src/store/engine/sqlite-steps.ts'
import { sqliteSteps } from '../../src/store/engine/sqlite-steps.ts'
import type { Steps } from '../../src/store/engine/steps.ts'
import { accountReads } from '../../src/store/ledger/account-reader.ts'
import { peopleReads } from '../../src/store/people/people-reader.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { openPostgresReader } from '../../src/store/postgres/reader.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { buildRulesReads } from '../../src/store/rules/rules-reader.ts'
import { vaultReads } from '../../src/store/vault/vault-reader.ts'
import { webhookReads } from '../../src/store/webhooks/webhook-reader.ts'
import type { TestBooks } from '../support/books.ts'
import { openTestBooks } from '../support/books.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { runRandomOperations } from './random-rows.ts'

tellMissingPostgres()

test('more reads than the database can answer are refused, and do not reach it', async () => {
  const asked: (() => void)[] = []
  const ask = (): Promise<never> => new Promise(resolve => asked.push(resolve as () => void))
  const reader = openPostgresReader({ readPoint: ask, readAgain: ask })
  const reads = Array.from({ length: 2_064 }, async () => await reader.ping())
  for (const read of reads) read.catch(() => {})
  // Without a turn of the event loop, however slow the machine is: reads that wait for a second are refused.
  const oneMore = (async () => await reader.ping())()
  expect(await oneMore.catch((fault: unknown) => fault)).toMatchObject({ code: 'overloaded' })
  expect(asked).toHaveLength(64)
  for (const answer of asked.splice(0)) answer()
  await Promise.all(reads.slice(0, 64))
  expect(asked).toHaveLength(64)
})

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
    await runRandomOperations(books, pool, { seed: 5, operations: 400, without: /^(remove|revoke|end|forget)/ })
  }, 120_000)
  afterAll(async () => {
    books.close()
    await server.stop()
  })

  /** Bytes are of another class on each database. */
  const plain = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return value.toHex()
    if (value instanceof Map || Array.isArray(value)) return [...value].map(plain)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]))
  }

  async function compare(make: () => Steps<unknown>): Promise<unknown> {
    const expected = onSqlite(make())
    expect(plain(await pool.readPoint(make()))).toEqual(plain(expected))
    expect(plain(await pool.read(make()))).toEqual(plain(expected))
    return expected
  }

  const digests = (table: string, column: string): readonly Buffer[] =>
    (books.db.query(`SELECT ${column} FROM ${table} WHERE ${column} IS NOT NULL`).values() as Uint8Array[][]).map(
      ([digest]) => Buffer.from(digest!),
    )
  const unknown = Buffer.alloc(32)

  test('keys and their accounts are the same', async () => {
    const known = [...digests('api_key', 'digest'), ...digests('api_key', 'old_digest')]
    for (const digest of known) expect(await compare(() => callReads.findKey(digest))).toBeDefined()
    expect(await compare(() => callReads.findKey(unknown))).toBeUndefined()
    expect(await compare(() => keySnapshotReads.findKeyOfAny([unknown, ...known]))).toMatchObject({ digest: known[0]! })
    for (const id of [1, 21, 22, 23, 24]) {
      await compare(() => accountReads.findByKey(id, books.nowMs))
      await compare(() => keySnapshotReads.findKeyById(id))
    }
    const keys = books.db.query('SELECT id, pepper FROM api_key').all() as { id: bigint; pepper: string | null }[]
    const versions = await compare(() => callReads.keyVersions([...keys.map(({ id }) => Number(id)), 99]))
    expect((versions as ReadonlyMap<number, number>).size).toBe(keys.length)
    const isNew = new Set<unknown>()
    for (const { id, pepper } of keys) {
      for (const digest of [unknown, ...known]) {
        isNew.add(await compare(() => callReads.hasNewText(Number(id), digest, pepper ?? '')))
        expect(await compare(() => callReads.hasNewText(Number(id), digest, 'other'))).toBe(false)
      }
    }
    expect(isNew).toEqual(new Set([true, false]))
  })

  test('people, sessions, invitations and service tokens are the same', async () => {
    await compare(() => peopleReads.hasOwner())
    for (const email of ['a@x', 'b@x', 'c@x', 'd@x', 'A@X']) {
      await compare(() => peopleReads.byEmail(email))
      await compare(() => peopleReads.hasSignedIn(email, '1.2.3.4'))
    }
    for (const id of [31, 32, 33, 34]) {
      await compare(() => peopleReads.byId(id))
      await compare(() => peopleReads.pendingTotp(id))
    }
    for (const digest of [...digests('refresh', 'digest'), unknown]) {
      const id = (await compare(() => peopleReads.sessionOfRefresh(digest.toHex()))) as number | undefined
      await compare(() => peopleReads.session(id ?? 0))
    }
    for (const digest of [...digests('invitation', 'digest'), unknown])
      await compare(() => peopleReads.invitation(digest.toHex(), books.nowMs))
    for (const digest of [...digests('service_token', 'digest'), ...digests('service_token', 'old_digest'), unknown])
      await compare(() => peopleReads.serviceToken(digest))
  })

  test('rules, settings, tiers, prices, marks and orders to delete are the same', async () => {
    const [onOne, onOther] = [buildRulesReads(), buildRulesReads()]
    for (let count = 0; count < 2; count++) expect(await pool.read(onOther.read())).toEqual(onSqlite(onOne.read()))
    for (const name of ['s', 't', 'site', 'none']) await compare(() => callReads.setting(name))
    expect(await compare(() => callReads.tiers())).not.toEqual([])
    await compare(() => callReads.prices())
    for (const version of [1, 2, 9_999]) await compare(() => callReads.price(version))
    for (const kind of ['pepper', 'jwt'] as const) await compare(() => callReads.secretMarks(kind))
    await compare(() => callReads.openDeletions(0))
    await compare(() => callReads.ping())
    await compare(() => callReads.findIdempotencyClaim(21, 'none'))
    await compare(() => callReads.storedAnswer(1))
  })

  test('due deliveries are the same', async () => {
    const laterMs = Date.now() + 1_000_000
    for (const after of [0, 51, 99]) await compare(() => webhookReads.findDue(laterMs, after))
    for (const id of [51, 52, 53]) {
      const names = async (steps: Steps<{ event: string } | undefined>) => (await pool.readPoint(steps))?.event
      const expected = onSqlite(webhookReads.nextDelivery(id, laterMs))?.event
      expect(await names(webhookReads.nextDelivery(id, laterMs))).toBe(expected!)
    }
    await compare(() => webhookReads.delivery(-1))
    for (const event of ['key.revoked', 'account.frozen', 'key']) await compare(() => webhookReads.hasSubscriber(event))
  })

  test('the vault is the same', async () => {
    const owner = { accountId: 11, id: 'x' }
    const insert = (id: string, tier: string): string =>
      `INSERT INTO task (call_id, account_id, id, key_id, provider, model, channel, admitted, upstream_id, status,
         created_ms, updated_ms, due_ms, expires_ms) VALUES (${id.length}, 11, '${id}', 21, 'p', 'm', 'p#1', '{${tier}}', 'u',
         'running', 1, 1, 5, 9)`
    for (const sql of [insert('x', ''), insert('xx', '"tier":"flex"'), insert('xxx', '"tier":null')]) {
      await pool.runScript(sql)
      books.db.run(sql)
    }
    const page = { limit: 2, offset: 0 }
    for (const filter of [
      {},
      { status: 'running' as const },
      { model: 'n' },
      { ids: ['x', 'y'] },
      { serviceTier: 'flex' },
    ])
      await compare(() => vaultReads.tasks(11, { ...page, ...filter }))
    expect(await compare(() => vaultReads.tasks(11, { ...page, serviceTier: 'default' }))).toMatchObject({ 1: 2 })
    await compare(() => vaultReads.task(owner))
    await compare(() => vaultReads.taskOfCall(1, 11))
    await compare(() => vaultReads.dueTasks(5, 10))
    await compare(() => vaultReads.unconfirmedTasks(10))
    await compare(() => vaultReads.response(owner, 0))
    await compare(() => vaultReads.reasoning(owner, 0))
    await compare(() => vaultReads.file(owner, 0))
    await compare(() => vaultReads.files(11, 0, 5))
    await compare(() => vaultReads.filesSum(11, 0))
    await compare(() => vaultReads.references(11, 0, ['file x', 'y']))
    await compare(() => vaultReads.limitDebts())
    await compare(() => vaultReads.factors())
  })
})
