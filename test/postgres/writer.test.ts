// The writer on PostgreSQL promises what the writer on SQLite promises, also while the database is away.

import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { Refusal } from '../../src/base/errors.ts'
import type { Steps } from '../../src/store/engine/steps.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { LedgerWriter } from '../../src/store/postgres/ledger.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { PostgresQueries } from '../../src/store/postgres/queries.ts'
import { openPostgresReader } from '../../src/store/postgres/reader.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { PostgresTotals } from '../../src/store/postgres/totals.ts'
import { COLD_CONNECTIONS, PostgresWriter } from '../../src/store/postgres/writer.ts'
import { holdOf, recordOf } from '../support/books.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const by = { actor: 'test' }
const codeOf = (result: Promise<unknown>): Promise<unknown> =>
  result.then(
    () => 'done',
    fault => (fault instanceof Refusal ? fault.code : `not a refusal: ${fault}`),
  )

describe.skipIf(!hasPostgres)('the writer on PostgreSQL', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let writer: PostgresWriter

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  const openPool = (connections: number): PostgresPool =>
    server.openAgain(server.lastDatabase, { connections, deadlineMs: 60_000 })
  const openLedger = async (): Promise<LedgerWriter> => {
    const owner = await Membership.join(pool, { version: '1', address: 'test' })
    // On a slow machine no operation of a call is refused because it has waited.
    return new LedgerWriter(openPool(1), { owner, onFenced: () => {}, retryMs: 1, waitedMs: () => 0 })
  }

  beforeEach(async () => {
    pool = await server.open({ deadlineMs: 60_000 })
    await createSchema(pool)
    writer = new PostgresWriter({ ledger: await openLedger(), pool: openPool(COLD_CONNECTIONS) })
    const key = { id: 1_011, accountId: 11, existing: false, digest: '0b'.padStart(64, '0'), credit: '1000' } as const
    const about = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null, creditRef: 11 }
    expect(await writer.run('createKey', { ...key, ...about }, by)).toEqual({ done: 'created' })
  })

  const one = async <Row>(sql: string): Promise<Row> => (await pool.transact(postgresQuery<Row>(sql).get()))!

  test('runs all kinds of operations and tells of its batches', async () => {
    const batches: number[] = []
    writer.onBatch = operations => batches.push(operations)
    expect(await writer.run('hold', holdOf(1, 11, '100'))).toEqual({ done: 'held' })
    expect(await writer.run('settle', { record: recordOf(1, 11), cost: '40' })).toMatchObject({ done: 'settled' })
    const kept = { accountId: 11, id: 'r', keyId: 1_011, status: 'completed', model: 'p/m', channel: null } as const
    const more = { upstreamId: null, previousId: null, createdMs: 1, expiresMs: 9_000_000_000_000 }
    const sealed = Buffer.from('content').toString('base64')
    expect(await writer.run('keepResponse', { ...kept, ...more, sealed })).toEqual({ done: 'kept' })
    expect(await writer.run('setAccount', { id: 11, name: 'y' }, { ...by, expectedVersion: 7 })).toEqual({
      done: 'stale',
    })
    expect(batches).toEqual([1, 1])
    expect([writer.queuedCount, writer.oldestWaitMs, writer.isHealthy, writer.isDiskFull]).toEqual([0, 0, true, false])
    await writer.close()
    expect(await codeOf(writer.run('hold', holdOf(2, 11, '1')))).toBe('storage_away')
    expect(await codeOf(writer.run('setSetting', { name: 'a', value: 'b' }))).toBe('storage_away')
  })

  test('keeps the quota of an account, whichever process has written', async () => {
    const other = new PostgresWriter({ ledger: await openLedger(), pool: openPool(COLD_CONNECTIONS) })
    const bytes = Math.floor(bounds.storedFilesBytesMax / 4)
    const keep = (at: number): Promise<unknown> =>
      [writer, other][at % 2]!.run('keepFile', { accountId: 11, id: `f${at}`, channel: 'c', expiresMs: 9e12, bytes })
    for (let at = 0; at < 10; at++) await keep(at)
    expect(await one("SELECT string_agg(id, ' ' ORDER BY seq) AS ids FROM kept_file")).toEqual({ ids: 'f6 f7 f8 f9' })
    expect(await one("SELECT rows, bytes FROM kept_share WHERE kind = 'kept_file'")).toEqual({
      rows: 4n,
      bytes: BigInt(4 * bytes),
    })
  })

  test('deletes stored responses of the largest account beyond the bytes of all, when it sweeps', async () => {
    const small = new PostgresWriter({
      ...{ ledger: await openLedger(), pool: openPool(COLD_CONNECTIONS), responsesBytesMax: 50 },
    })
    const keep = (accountId: number, id: string, bytes: number): Promise<unknown> =>
      small.run('keepResponse', {
        ...{ accountId, id, keyId: 1, status: 'completed', model: 'p/m', channel: null, upstreamId: null },
        ...{ previousId: null, createdMs: 1, expiresMs: 9e12, sealed: Buffer.alloc(bytes).toString('base64') },
      })
    await keep(11, 'a', 30)
    await keep(11, 'b', 30)
    await keep(12, 'c', 10)
    expect(await small.run('forgetKept', { nowMs: 5 })).toEqual({ done: 'forgotten', count: 1 })
    expect(await one("SELECT string_agg(id, ' ' ORDER BY seq) AS ids FROM kept_response")).toEqual({ ids: 'b c' })
  })

  test('turns errors and lost connections into refusals, and goes on afterwards', async () => {
    const nothing = { kind: 'top_up', ref: 5, accountId: 11, amount: '0', reference: null, author: 'a' } as const
    // A text that PostgreSQL cannot store is changed, and not refused.
    expect(await codeOf(writer.run('setSetting', { name: 'nul', value: 'a\0b' }))).toBe('done')
    expect(await codeOf(writer.run('post', nothing, by))).toBe('storage_away')
    const kill = `SELECT count(pg_terminate_backend(pid, 60000)) AS n FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`
    const calls = Array.from({ length: 20 }, (_, at) => codeOf(writer.run('hold', holdOf(at + 1, 11, '1'))))
    const settings = Array.from({ length: 20 }, (_, at) =>
      codeOf(writer.run('setSetting', { name: `s${at}`, value: 'x' })),
    )
    await pool.transact(postgresQuery(kill).get())
    // Batches are sent again. An operation of people may have been lost, and says so.
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['done']))
    expect((await Promise.all(settings)).filter(code => code !== 'done' && code !== 'storage_away')).toEqual([])
    // It may still get a connection whose backend ends only now.
    const after = (): Promise<unknown> => codeOf(writer.run('setSetting', { name: 'after', value: 'x' }))
    while ((await after()) !== 'done') await Bun.sleep(20)
    expect(await one("SELECT value FROM setting WHERE name = 'after'")).toEqual({ value: 'x' })
    expect(await one('SELECT CAST(sum(amount) AS BIGINT) AS held FROM hold')).toEqual({ held: 20n })
  })

  test('refuses what can be refused while it is behind, and all that waits too long', async () => {
    const blocked = openPool(1)
    await blocked.runScript('SELECT pg_advisory_lock(7311580423)')
    const first = codeOf(writer.run('setSetting', { name: 'a', value: 'b' }))
    const second = codeOf(writer.run('setSetting', { name: 'b', value: 'b' }))
    expect(writer.queuedCount).toBe(1)
    const later = performance.now() + bounds.ledgerQueueMsMax + 1
    const clock = spyOn(performance, 'now').mockReturnValue(later)
    expect(writer.oldestWaitMs).toBeGreaterThan(bounds.ledgerQueueMsMax)
    const refused = codeOf(writer.run('trimLog', { below: 1 }))
    clock.mockRestore()
    expect(await refused).toBe('overloaded')
    expect(await codeOf(writer.run('keepFile', { accountId: 11, id: 'f', channel: 'c', expiresMs: 9, bytes: 1 }))).toBe(
      'done',
    )
    expect([await first, await second]).toEqual(['storage_away', 'storage_away'])
    await blocked.runScript('SELECT pg_advisory_unlock(7311580423)')
    expect(await codeOf(writer.run('setSetting', { name: 'c', value: 'b' }))).toBe('done')
    // It was refused before it had begun, so that it is never carried out.
    expect(await one("SELECT count(*) AS n FROM setting WHERE name = 'b'")).toEqual({ n: 0n })
  })

  test('tells whether the disk of the database is full', async () => {
    function* full(): Steps<never> {
      yield* postgresQuery(`DO $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$`).run()
      throw new Error('not reached')
    }
    const cold = openPool(COLD_CONNECTIONS)
    let isFull = true
    const filled = new PostgresWriter({
      ledger: await openLedger(),
      pool: {
        transact: steps => cold.transact(isFull ? full() : steps),
        runAlone: statement => cold.runAlone(statement),
      },
    })
    expect(await codeOf(filled.run('setSetting', { name: 'a', value: 'b' }))).toBe('storage_full')
    expect(filled.isDiskFull).toBe(true)
    isFull = false
    expect(await codeOf(filled.run('setSetting', { name: 'a', value: 'b' }))).toBe('done')
    expect(filled.isDiskFull).toBe(false)
  })

  test('is read by the reader, the queries and the totals', async () => {
    const reader = openPostgresReader(openPool(2))
    const queries = new PostgresQueries(openPool(2))
    const totals = await PostgresTotals.open(pool)
    await writer.run('hold', holdOf(1, 11, '100'))
    await writer.run('hold', holdOf(2, 11, '100'))
    await writer.run('settle', { record: recordOf(1, 11), cost: '40' })
    await totals.refresh()
    expect(totals.totals()).toEqual({ openHolds: 1, held: 100n, balance: 960n, shortfall: 0n, tasks: 0 })
    totals.close()
    await reader.ping()
    expect((await reader.tiers()).map(({ name }) => name)).toEqual(['free', 'pro', 'standard'])
    const list = { sort: 'created', descending: false, limit: 10, after: undefined, filters: {}, scope: null }
    expect((await queries.query('accounts', list)).rows).toHaveLength(1)
    await expect(queries.query('noSuchQuery' as never, {} as never)).rejects.toThrow(Refusal)
    queries.close()
  })
})
