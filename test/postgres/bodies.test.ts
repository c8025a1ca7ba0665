// Bodies in PostgreSQL: encrypted, limited in size also when several processes store them, and deleted in time.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { idAtMs } from '../../src/base/ids.ts'
import { Secret } from '../../src/base/secrets/secret.ts'
import type { SecretRing } from '../../src/base/secrets/secret-ring.ts'
import { buildSecretRing } from '../../src/base/secrets/secret-ring.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { BodiesOwner } from '../../src/store/records/bodies.ts'
import { BodyStore } from '../../src/store/records/bodies.ts'
import type { BodiesQuota, BodyPart } from '../../src/store/records/bodies-messages.ts'
import { until } from '../support/gateway.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const MEGABYTE = 1024 * 1024
const DAY_MS = 24 * 3_600_000
const nowMs = Date.UTC(2026, 5, 1)
const callId = idAtMs(nowMs)

const ownerOf = (call: number, accountId = 1): BodiesOwner => ({ callId: call, accountId })
const part = (text: string, truncated = false): BodyPart => ({ bytes: Buffer.from(text), truncated })
/** Bytes that do not compress. */
const noise = (bytes: number): BodyPart => ({ bytes: crypto.getRandomValues(new Uint8Array(bytes)), truncated: false })
const textOf = (stored: BodyPart | undefined): string => Buffer.from(stored!.bytes).toString()

interface StoreOptions {
  readonly ring?: SecretRing
  readonly atMs?: number
  readonly quota?: BodiesQuota
  readonly database?: string
}

describe.skipIf(!hasPostgres)('bodies on PostgreSQL', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let opened: BodyStore[] = []
  let errors: string[] = []

  beforeAll(async () => {
    server = await startPostgres()
    pool = await server.open()
    await createSchema(pool)
  })
  afterAll(() => server.stop())
  beforeEach(() => pool.runScript('TRUNCATE bodies.body, bodies.share'))
  afterEach(async () => {
    for (const bodies of opened) await bodies.close()
    opened = []
    errors = []
  })

  function open(options: StoreOptions = {}): BodyStore {
    const bodies = new BodyStore({
      place: server.addressOf(options.database ?? server.lastDatabase),
      encryption: options.ring ?? buildSecretRing('s'.repeat(43)),
      days: 30,
      ...(options.quota && { quota: options.quota }),
      dateMs: () => options.atMs ?? nowMs,
      onError: detail => errors.push(detail),
    })
    opened.push(bodies)
    return bodies
  }

  const rows = <Row>(sql: string): Promise<Row[]> => pool.transact(postgresQuery<Row>(sql).all())
  const countBodies = async (): Promise<number> =>
    Number((await rows<{ n: bigint }>('SELECT count(*) AS n FROM bodies.body'))[0]!.n)
  const storedBodies = async (): Promise<string> => {
    const found = await rows<{ account_id: bigint; call_id: bigint }>('SELECT * FROM bodies.body ORDER BY call_id')
    return found.map(row => `${row.account_id}:${Number(row.call_id) - callId}`).join(' ')
  }
  /** Accounts whose sum of bytes is wrong. */
  const wrongShares = (): Promise<unknown[]> =>
    rows(`SELECT s.account_id FROM bodies.share s FULL JOIN
        (SELECT account_id, sum(bytes) AS bytes, sum(length(request) + length(answer)) AS length
         FROM bodies.body GROUP BY account_id) b USING (account_id)
      WHERE s.bytes IS DISTINCT FROM coalesce(b.bytes, 0) OR b.bytes <> b.length`)
  const fingerprints = (): Promise<unknown[]> =>
    rows(`SELECT DISTINCT encode(substr(request, 2, 4), 'hex') AS request, encode(substr(answer, 2, 4), 'hex') AS answer
      FROM bodies.body`)

  test('are read as they were stored, also by another process, and are encrypted', async () => {
    const bodies = open()
    bodies.store(ownerOf(callId), { request: part('a very plain request'), answer: part('data: Ω\n\n', true) })
    for (const reader of [bodies, open()]) {
      const stored = await reader.read(callId)
      expect([textOf(stored?.request), textOf(stored?.answer)]).toEqual(['a very plain request', 'data: Ω\n\n'])
      expect([stored?.request.truncated, stored?.answer.truncated]).toEqual([false, true])
    }
    const [row] = await rows<{ request: Uint8Array }>('SELECT request FROM bodies.body')
    expect(Buffer.from(row!.request).toString('latin1')).not.toContain('plain')
    expect(await bodies.read(callId + 1)).toBeUndefined()
    expect(errors).toEqual([])
  })

  test('of a call are stored once', async () => {
    const bodies = open()
    bodies.store(ownerOf(callId), { request: part('a'), answer: part('b') })
    bodies.store(ownerOf(callId), { request: part('another'), answer: part('one') })
    expect(textOf((await bodies.read(callId))?.request)).toBe('a')
    expect(await wrongShares()).toEqual([])
  })

  test('are each cut if they are too long', async () => {
    const bodies = open()
    bodies.store(ownerOf(callId), { request: part('x'.repeat(3 * MEGABYTE)), answer: part('short') })
    const stored = (await bodies.read(callId))!
    expect([stored.request.bytes.length, stored.request.truncated]).toEqual([bounds.storedBodyBytesMax, true])
  })

  test('are encrypted again with the newest key while others are stored, also when it changes meanwhile', async () => {
    const ring = buildSecretRing('s'.repeat(43))
    const bodies = open({ ring })
    const store = (index: number): void =>
      bodies.store(ownerOf(callId + index), { request: part(`a${index}`), answer: part(`b${index}`) })
    for (let index = 0; index < 80; index++) store(index)
    ring.replace([new Secret('t'.repeat(43)), ring.newest])
    bodies.renewSecrets()
    const resealed = bodies.reseal()
    store(80)
    ring.replace([new Secret('u'.repeat(43)), ...ring.all])
    bodies.renewSecrets()
    await resealed
    const newest = ring.newestFingerprint
    expect(await fingerprints()).toEqual([{ request: newest, answer: newest }])
    expect(textOf((await bodies.read(callId + 79))?.answer)).toBe('b79')
    expect(textOf((await bodies.read(callId + 80))?.request)).toBe('a80')
  })

  test('are dropped and counted when too many come at once', async () => {
    const bodies = open()
    const large = { request: noise(65_536), answer: part('x'.repeat(MEGABYTE - 65_536)) }
    for (let index = 0; index < 20; index++) bodies.store(ownerOf(callId + index, index % 2), large)
    expect(bodies.dropped).toBe(4)
    expect(errors).toEqual(['too many bodies wait to be written'])
    await bodies.read(callId)
    expect(await countBodies()).toBe(16)
  })

  test('are counted as dropped when the database is away', async () => {
    const bodies = open({ database: 'missing' })
    bodies.store(ownerOf(callId), { request: part('a'), answer: part('b') })
    await until(() => bodies.dropped === 1, 'the body is counted as dropped')
    expect(errors).toHaveLength(1)
  })

  test('are deleted when they expire, however many, and not earlier', async () => {
    const bodies = open()
    for (let index = 0; index < 250; index++)
      bodies.store(ownerOf(callId + index), { request: part('old'), answer: part('old') })
    const recent = idAtMs(nowMs + 2 * DAY_MS)
    bodies.store(ownerOf(recent), { request: part('new'), answer: part('new') })
    await bodies.read(recent)
    const early = open({ atMs: nowMs + 30 * DAY_MS - 1 })
    early.deleteExpired()
    await early.read(recent)
    expect(await countBodies()).toBe(251)
    open({ atMs: nowMs + 30 * DAY_MS + 1 }).deleteExpired()
    while ((await countBodies()) > 1) await Bun.sleep(20)
    expect(await wrongShares()).toEqual([])
  })

  describe('the stored bytes', () => {
    const quota = { ofAccountBytesMax: 100_000, bytesMax: 250_000 }

    test('of one account are limited: its oldest bodies are deleted, and none of other accounts', async () => {
      const bodies = open({ quota })
      bodies.store(ownerOf(callId, 1), { request: noise(30_000), answer: part('') })
      for (let index = 1; index <= 12; index++)
        bodies.store(ownerOf(callId + index, 2), { request: noise(30_000), answer: part('') })
      await bodies.read(callId)
      expect(await storedBodies()).toBe('1:0 2:10 2:11 2:12')
      expect([bodies.replaced, bodies.dropped]).toEqual([9, 0])
      expect(await wrongShares()).toEqual([])
    })

    test('of all accounts are limited: the largest account loses its oldest bodies', async () => {
      const bodies = open({ quota })
      for (let index = 0; index < 12; index++) {
        const request = noise(index === 0 ? 10_000 : 32_000)
        bodies.store(ownerOf(callId + index, index === 0 ? 1 : 2 + (index % 3)), { request, answer: part('') })
      }
      await bodies.read(callId)
      const stored = await storedBodies()
      expect(stored).toStartWith('1:0 ')
      expect(stored.split(' ')).toHaveLength(8)
      expect(await wrongShares()).toEqual([])
    })

    test('are reduced by deletions', async () => {
      const bodies = open({ quota })
      for (let index = 0; index < 3; index++)
        bodies.store(ownerOf(callId + index), { request: noise(30_000), answer: part('') })
      await bodies.erase([callId + 1, callId + 99])
      bodies.store(ownerOf(callId + 3), { request: noise(30_000), answer: part('') })
      await bodies.read(callId)
      expect(await storedBodies()).toBe('1:0 1:2 1:3')
    })

    test('stay within the limits, and are counted exactly, while several processes store and delete', async () => {
      const processes = [open({ quota }), open({ quota }), open({ quota })]
      const erased: Promise<void>[] = []
      for (let index = 0; index < 90; index++) {
        const bodies = processes[index % 3]!
        bodies.store(ownerOf(callId + index, index % 4), { request: noise(20_000), answer: part('') })
        if (index % 5 === 0) erased.push(bodies.erase([callId + index - 2, callId + index - 1]))
      }
      await Promise.all(erased)
      await Promise.all(processes.map(bodies => bodies.read(callId)))
      expect(processes.map(bodies => bodies.dropped)).toEqual([0, 0, 0])
      expect(await wrongShares()).toEqual([])
      const [sum] = await rows<{ bytes: bigint }>('SELECT CAST(sum(bytes) AS BIGINT) AS bytes FROM bodies.share')
      expect(Number(sum!.bytes)).toBeLessThanOrEqual(quota.bytesMax)
    })
  })
})
