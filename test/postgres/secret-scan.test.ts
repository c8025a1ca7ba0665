// The scan for the use of secrets on PostgreSQL: it counts as on SQLite, and encrypts old values again.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Seal } from '../../src/base/secrets/seal.ts'
import { buildSecretRing } from '../../src/base/secrets/secret-ring.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { ResealCursor, ResealStep } from '../../src/store/secrets/resealed-rows.ts'
import { resealedWriter, resealStart } from '../../src/store/secrets/resealed-rows.ts'
import { sealedColumns } from '../../src/store/secrets/secret-marks.ts'
import { SecretScan } from '../../src/store/secrets/secret-scan.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const [oldSecret, newSecret] = ['o'.repeat(40), 'f'.repeat(40)]
const ring = buildSecretRing(newSecret, oldSecret)
const [newest, older] = ring.fingerprints as [string, string]
const oldSeal = new Seal(buildSecretRing(oldSecret))
const seal = new Seal(ring)

describe.skipIf(!hasPostgres)('the scan for the use of secrets on PostgreSQL', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let scan: SecretScan

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    pool = await server.open()
    await createSchema(pool)
    scan = new SecretScan(server.addressOf(server.lastDatabase))
  })
  afterEach(async () => {
    scan.close()
    await server.closeAll()
  })

  const insert = (sql: string, ...values: (number | string | Uint8Array | null)[]): Promise<number> =>
    pool.transact(postgresQuery(sql).run(...values))
  const sealed = (withSeal: Seal, table: string, row: number | string, column: string): Buffer =>
    withSeal.seal({ table, row, column }, Buffer.from(`${table} ${row}`))
  const digest = (id: number): Buffer => Buffer.alloc(32, id)

  test('counts digests by pepper, and lists keys on older ones', async () => {
    await insert("INSERT INTO account (id, name, kind, created_ms) VALUES (11, 'x', 'prepaid', 1)")
    const key = `INSERT INTO api_key (id, digest, suffix, name, account_id, tier, created_ms, pepper)
      VALUES ($1, $2, 'abcd', 'x', 11, 'pro', 1, $3)`
    await insert(key, 101, digest(101), 'aaaaaaaa')
    await insert(key, 102, digest(102), null)
    await insert(key, 103, digest(103), 'bbbbbbbb')
    const old = 'UPDATE api_key SET old_digest = $1, old_pepper = $2, old_until_ms = $3 WHERE id = 103'
    await insert(old, digest(7), 'cccccccc', 9e15)
    const code = `INSERT INTO code (id, digest, batch, amount, author, made_ms, expires_ms, pepper)
      VALUES ($1, $2, 'b', 5, 'a', 1, $3, 'aaaaaaaa')`
    await insert(code, 1, digest(1), null)
    await insert(code, 2, digest(2), 9e15)
    await insert(code, 3, digest(3), 1_000) // has expired
    await scan.during(async () => {
      expect(await scan.run('countPeppered', { first: 'ffffffff' })).toEqual({
        aaaaaaaa: { keys: 1, codes: 2 },
        bbbbbbbb: { keys: 1 },
        ffffffff: { keys: 1 },
        cccccccc: { 'old texts of keys': 1 },
      })
      const query = { newest: 'bbbbbbbb', first: 'ffffffff', limit: 10 }
      expect(await scan.run('keysOnOlder', query)).toEqual([
        { id: 101, name: 'x', suffix: 'abcd', mark: 'aaaaaaaa' },
        { id: 102, name: 'x', suffix: 'abcd', mark: 'ffffffff' },
      ])
    })
  })

  test('counts encrypted values by secret, also those of bodies, and encrypts them again', async () => {
    for (let id = 1; id <= 70; id++)
      await insert(
        'INSERT INTO kept_answer VALUES ($1, $2)',
        id,
        sealed(id > 68 ? seal : oldSeal, 'kept_answer', id, 'sealed'),
      )
    const reasoning = 'INSERT INTO kept_reasoning (account_id, id, expires_ms, bytes, sealed) VALUES (11, $1, 1, 1, $2)'
    await insert(reasoning, 'r_1', sealed(oldSeal, 'kept_reasoning', '11/r_1', 'sealed'))
    const channel = `INSERT INTO channel (id, proxy, author, created_ms, changed_ms, version) VALUES ($1, $2, 'a', 1, 1, 1)`
    await insert(channel, 'p#1', sealed(oldSeal, 'channel_rule', 'p#1', 'proxy'))
    const body = 'INSERT INTO bodies.body VALUES ($1, 11, 1, $2, 0, $3, 0)'
    await insert(body, 5, sealed(oldSeal, 'body', 5, 'request'), sealed(seal, 'body', 5, 'answer'))
    const damaged = sealed(oldSeal, 'kept_answer', 99, 'sealed')
    damaged[damaged.length - 1]! ^= 1
    await insert('INSERT INTO kept_answer VALUES (99, $1)', damaged)
    await scan.during(async () => {
      expect(await scan.run('countSealed', { bodies: '' })).toEqual({
        [older]: { kept_answer: 69, kept_reasoning: 1, 'channel.proxy': 1, 'body.request': 1 },
        [newest]: { kept_answer: 2, 'body.answer': 1 },
      })
      const write = resealedWriter(sealedColumns)
      for (let cursor: ResealCursor | undefined = resealStart; cursor !== undefined; ) {
        const { rows, next }: ResealStep = await scan.run('reseal', { secrets: [newSecret, oldSecret], cursor })
        for (const row of rows) expect(await pool.transact(write(row))).toBe(true)
        cursor = next
      }
      expect(await scan.run('countSealed', { bodies: '' })).toEqual({
        [older]: { kept_answer: 1, 'body.request': 1 },
        [newest]: { kept_answer: 70, kept_reasoning: 1, 'channel.proxy': 1, 'body.answer': 1 },
      })
    })
    const read = postgresQuery<{ proxy: Uint8Array }>('SELECT proxy FROM channel')
    const { proxy } = (await pool.transact(read.get()))!
    const plain = seal.open({ table: 'channel_rule', row: 'p#1', column: 'proxy' }, proxy)
    expect(plain.toString()).toBe('channel_rule p#1')
  })
})
