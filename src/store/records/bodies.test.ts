// Tests the file of bodies: encrypted, limited in size, deleted in time, and never blocking a call.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../../test/support/database.ts'
import { until } from '../../../test/support/gateway.ts'
import { bounds } from '../../base/bounds.ts'
import { idAtMs } from '../../base/ids.ts'
import { Secret } from '../../base/secrets/secret.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import type { BodiesOwner } from './bodies.ts'
import { BodyStore } from './bodies.ts'
import type { BodiesQuota, BodyPart } from './bodies-messages.ts'

const MEGABYTE = 1024 * 1024
const DAY_MS = 24 * 3_600_000
const nowMs = Date.UTC(2026, 5, 1)
const callId = idAtMs(nowMs)

let folder: string
let path: string
let opened: BodyStore[]
let errors: string[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-bodies-'))
  path = join(folder, 'bodies.db')
  opened = []
  errors = []
})
afterEach(async () => {
  for (const bodies of opened) await bodies.close()
  rmSync(folder, { recursive: true, force: true })
})

interface StoreOptions {
  readonly days?: number
  readonly secret?: string
  readonly ring?: SecretRing
  readonly atMs?: number
  readonly quota?: BodiesQuota
}

function open(options: StoreOptions = {}): BodyStore {
  const bodies = new BodyStore({
    place: { path },
    encryption: options.ring ?? buildSecretRing(options.secret ?? 's'.repeat(43)),
    days: options.days ?? 30,
    ...(options.quota && { quota: options.quota }),
    dateMs: () => options.atMs ?? nowMs,
    onError: detail => errors.push(detail),
  })
  opened.push(bodies)
  return bodies
}

const ownerOf = (call: number, accountId = 1): BodiesOwner => ({ callId: call, accountId })
const part = (text: string, truncated = false): BodyPart => ({ bytes: Buffer.from(text), truncated })
const textOf = (stored: BodyPart | undefined): string => Buffer.from(stored!.bytes).toString()

const errorOf = (work: Promise<unknown>): Promise<string> => work.then(String, (fault: Error) => fault.message)

function countBodies(): number {
  const db = openDatabase(path, { readonly: true })
  try {
    return (db.query('SELECT count(*) AS n FROM body').get() as { n: number }).n
  } finally {
    db.close()
  }
}

/** The fingerprints of the encryption keys of all requests and answers. */
function fingerprints(): unknown[] {
  const db = openDatabase(path, { readonly: true })
  const sql = 'SELECT DISTINCT lower(hex(substr(request, 2, 4))), lower(hex(substr(answer, 2, 4))) FROM body'
  const found = db.query(sql).values()
  db.close()
  return found
}

describe('bodies', () => {
  test('need no file and no thread until the first body is stored', async () => {
    const bodies = open()
    bodies.deleteExpired()
    expect(await bodies.read(callId)).toBeUndefined()
    expect(existsSync(path)).toBe(false)
  })

  test('are read as they were stored, also after a restart', async () => {
    const bodies = open()
    const view = Buffer.from('xx{"ask":"river"}xx').subarray(2, -2)
    bodies.store(ownerOf(callId), { request: { bytes: view, truncated: false }, answer: part('data: Ω\n\n', true) })
    for (const reader of [bodies, open()]) {
      const stored = await reader.read(callId)
      expect([textOf(stored?.request), textOf(stored?.answer)]).toEqual(['{"ask":"river"}', 'data: Ω\n\n'])
      expect([stored?.request.truncated, stored?.answer.truncated]).toEqual([false, true])
      await bodies.close()
    }
    expect(errors).toEqual([])
  })

  test('are not found by the id of another call', async () => {
    const bodies = open()
    bodies.store(ownerOf(callId), { request: part('a'), answer: part('b') })
    expect(await bodies.read(callId + 1)).toBeUndefined()
  })

  test('are encrypted on the disk', async () => {
    const bodies = open()
    bodies.store(ownerOf(callId), { request: part('a very plain request'), answer: part('a very plain answer') })
    await bodies.read(callId)
    const files = readdirSync(folder).map(name => readFileSync(join(folder, name)).toString('latin1'))
    expect(files.length).toBeGreaterThan(0)
    for (const text of files) expect(text).not.toContain('very plain')
    await bodies.close()
    expect(readFileSync(path).toString('latin1')).not.toContain('very plain')
  })

  test('cannot be read with another key, and the error says so', async () => {
    const bodies = open()
    bodies.store(ownerOf(callId), { request: part('a'), answer: part('b') })
    await bodies.close()
    expect(await errorOf(open({ secret: 't'.repeat(43) }).read(callId))).toContain(
      'an encryption key that is not configured',
    )
  })

  test('are encrypted again with the newest key while others are stored', async () => {
    const ring = buildSecretRing('s'.repeat(43))
    const bodies = open({ ring })
    for (let index = 0; index < 100; index++)
      bodies.store(ownerOf(callId + index), { request: part(`a${index}`), answer: part(`b${index}`) })
    await bodies.read(callId)
    const [old] = ring.fingerprints as [string]
    expect(fingerprints()).toEqual([[old, old]])
    ring.replace([new Secret('t'.repeat(43)), ring.newest])
    bodies.renewSecrets()
    const [first, second] = [bodies.reseal(), bodies.reseal()]
    bodies.store(ownerOf(callId + 100), { request: part('a100'), answer: part('b100') })
    await Promise.all([first, second])
    expect(textOf((await bodies.read(callId + 100))?.request)).toBe('a100')
    expect(fingerprints()).toEqual([[ring.newestFingerprint, ring.newestFingerprint]])
    ring.replace([ring.newest])
    bodies.renewSecrets()
    const stored = await bodies.read(callId + 99)
    expect([textOf(stored?.request), textOf(stored?.answer)]).toEqual(['a99', 'b99'])
    await bodies.close()
    expect(textOf((await open({ ring }).read(callId))?.answer)).toBe('b0')
  })

  test('are encrypted again with the newest key also when it changes meanwhile', async () => {
    const ring = buildSecretRing('s'.repeat(43))
    const bodies = open({ ring })
    for (let index = 0; index < 100; index++)
      bodies.store(ownerOf(callId + index), { request: part(`a${index}`), answer: part(`b${index}`) })
    ring.replace([new Secret('t'.repeat(43)), ring.newest])
    bodies.renewSecrets()
    const resealed = bodies.reseal()
    ring.replace([new Secret('u'.repeat(43)), ...ring.all])
    bodies.renewSecrets()
    await resealed
    expect(fingerprints()).toEqual([[ring.newestFingerprint, ring.newestFingerprint]])
  })

  test('are not encrypted again when there are none', async () => {
    await open().reseal()
    expect(existsSync(path)).toBe(false)
  })

  test('are each cut if they are too long, and compressed', async () => {
    const bodies = open()
    const long = { bytes: new Uint8Array(3 * MEGABYTE).fill(120), truncated: false }
    bodies.store(ownerOf(callId), { request: long, answer: part('short') })
    const stored = (await bodies.read(callId))!
    expect([stored.request.bytes.length, stored.request.truncated]).toEqual([bounds.storedBodyBytesMax, true])
    expect([textOf(stored.answer), stored.answer.truncated]).toEqual(['short', false])
    await bodies.close()
    expect(statSync(path).size).toBeLessThan(100_000)
  })

  test('are dropped and counted when too many come at once, and stored again afterwards', async () => {
    const bodies = open()
    const megabyte = { bytes: crypto.getRandomValues(new Uint8Array(65_536)), truncated: false }
    const long = { bytes: Buffer.concat(Array.from({ length: 16 }, () => megabyte.bytes)), truncated: false }
    for (let index = 0; index < 20; index++)
      bodies.store(ownerOf(callId + index, index % 2), { request: long, answer: part('') })
    expect(bodies.dropped).toBe(4)
    expect(errors).toEqual(['too many bodies wait to be written'])
    await bodies.read(callId) // is answered after all of them are written
    expect(countBodies()).toBe(16)
    bodies.store(ownerOf(callId + 100), { request: long, answer: part('') })
    expect((await bodies.read(callId + 100))?.request.bytes.length).toBe(MEGABYTE)
    expect(bodies.dropped).toBe(4)
  })

  test('are deleted when they expire, however many, and not earlier', async () => {
    const bodies = open()
    const old = { request: part('old'), answer: part('old') }
    for (let index = 0; index < 250; index++) bodies.store(ownerOf(callId + index), old)
    const recent = idAtMs(nowMs + 2 * DAY_MS)
    bodies.store(ownerOf(recent), { request: part('new'), answer: part('new') })
    await bodies.read(recent)
    await bodies.close()
    const early = open({ atMs: nowMs + 30 * DAY_MS - 1 })
    early.deleteExpired()
    await early.read(recent)
    expect(countBodies()).toBe(251)
    await early.close()
    open({ atMs: nowMs + 30 * DAY_MS + 1 }).deleteExpired()
    await until(() => countBodies() === 1, 'the expired bodies are deleted')
  })

  test('are not stored if they are kept for zero days', () => {
    open({ days: 0 }).store(ownerOf(callId), { request: part('a'), answer: part('b') })
    expect(existsSync(path)).toBe(false)
  })

  test('that cannot be written are counted as dropped', async () => {
    writeFileSync(path, 'this is no database, and it is long enough to be seen as none'.repeat(20))
    const bodies = open()
    bodies.store(ownerOf(callId), { request: part('a'), answer: part('b') })
    await until(() => bodies.dropped === 1, 'the body is counted as dropped')
    expect(errors).toHaveLength(1)
    expect(await errorOf(bodies.read(callId))).toContain('not a database')
  })
})

/** A body of bytes that do not compress. */
const noise = (bytes: number): BodyPart => ({ bytes: crypto.getRandomValues(new Uint8Array(bytes)), truncated: false })

describe('the stored bytes', () => {
  const quota = { ofAccountBytesMax: 100_000, bytesMax: 250_000 }
  const storedBodies = (): string => {
    const db = openDatabase(path, { readonly: true })
    try {
      const rows = db.query('SELECT account_id AS a, call_id - ?1 AS c FROM body_owner ORDER BY call_id').all(callId)
      const bodies = db.query('SELECT call_id FROM body').all()
      expect(bodies).toHaveLength(rows.length)
      return (rows as { a: number; c: number }[]).map(({ a, c }) => `${a}:${c}`).join(' ')
    } finally {
      db.close()
    }
  }

  test('of one account are limited: its oldest bodies are deleted, and none of other accounts', async () => {
    const bodies = open({ quota })
    bodies.store(ownerOf(callId, 1), { request: noise(30_000), answer: part('') })
    for (let index = 1; index <= 12; index++)
      bodies.store(ownerOf(callId + index, 2), { request: noise(30_000), answer: part('') })
    await bodies.read(callId)
    expect(storedBodies()).toBe('1:0 2:10 2:11 2:12')
    expect([bodies.replaced, bodies.dropped]).toEqual([9, 0])
  })

  test('of all accounts are limited: the largest account loses its oldest bodies', async () => {
    const bodies = open({ quota })
    for (let index = 0; index < 12; index++) {
      const accountId = index === 0 ? 1 : 2 + (index % 3)
      bodies.store(ownerOf(callId + index, accountId), {
        request: noise(index === 0 ? 10_000 : 32_000),
        answer: part(''),
      })
    }
    await bodies.read(callId)
    const stored = storedBodies()
    expect(stored).toStartWith('1:0 ')
    expect(stored.split(' ')).toHaveLength(8)
  })

  test('are counted again after a restart, and reduced by deletions', async () => {
    const first = open({ quota })
    for (let index = 0; index < 3; index++)
      first.store(ownerOf(callId + index), { request: noise(30_000), answer: part('') })
    await first.close()
    const bodies = open({ quota })
    await bodies.erase([callId + 1])
    bodies.store(ownerOf(callId + 3), { request: noise(30_000), answer: part('') })
    await bodies.read(callId)
    expect(storedBodies()).toBe('1:0 1:2 1:3')
    bodies.store(ownerOf(callId + 4), { request: noise(30_000), answer: part('') })
    await bodies.read(callId)
    expect(storedBodies()).toBe('1:2 1:3 1:4')
  })

  test('that wait to be written are limited per account, so that one account leaves room for another', async () => {
    const bodies = open()
    for (let index = 0; index < 20; index++)
      bodies.store(ownerOf(callId + index, 1), { request: noise(65_536), answer: noise(65_536) })
    const large = { request: part('x'.repeat(MEGABYTE)), answer: part('') }
    for (let index = 0; index < 20; index++) bodies.store(ownerOf(callId + 100 + index, 1), large)
    const dropped = bodies.dropped
    expect(dropped).toBeGreaterThan(10)
    bodies.store(ownerOf(callId + 200, 2), large)
    expect(bodies.dropped).toBe(dropped)
    expect((await bodies.read(callId + 200))?.request.bytes.length).toBe(MEGABYTE)
  })

  test('of a file of the first schema are migrated', async () => {
    const first = open()
    first.store(ownerOf(callId), { request: part('asked'), answer: part('told') })
    await first.close()
    const db = new Database(path)
    db.run('DROP TABLE body_owner')
    db.run('PRAGMA user_version = 1')
    db.close()
    const bodies = open({ quota })
    expect(textOf((await bodies.read(callId))?.request)).toBe('asked')
    bodies.store(ownerOf(callId + 1, 7), { request: part('a'), answer: part('b') })
    await bodies.read(callId)
    expect(storedBodies()).toBe('0:0 7:1')
  })
})
