// Tests that a key is found whichever pepper its digest has, and gets a digest with the newest pepper once.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../test/support/gateway.ts'
import { Refusal } from '../base/errors.ts'
import { Secret } from '../base/secrets/secret.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'
import { buildSecretRing } from '../base/secrets/secret-ring.ts'
import type { SqliteReader } from '../store/engine/reader.ts'
import { openCallReader } from '../store/engine/reader.ts'
import { Writer } from '../store/engine/writer.ts'
import { KeyFinder } from './key-finder.ts'
import type { KeyText } from './key-format.ts'
import { digestKey, mintKey } from './key-format.ts'

const [oldPepper, newPepper] = ['o'.repeat(40), 'f'.repeat(40)]

let folder: string
let writer: Writer
let reader: SqliteReader
let ring: SecretRing
let operations: string[]
let finder: KeyFinder

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-finder-'))
  ;[writer] = await Writer.open({ path: join(folder, 'weir.db'), ballastBytes: 0 }, () => {})
  reader = openCallReader(join(folder, 'weir.db'))
  ring = buildSecretRing(oldPepper)
  operations = []
  finder = new KeyFinder({ reader, writer: countingWriter(), pepper: ring })
})
afterEach(async () => {
  await finder.close()
  reader.close()
  await writer.close()
  rmSync(folder, { recursive: true, force: true })
})

const countingWriter = (): Pick<Writer, 'run'> => ({
  run: ((name: 'redigestKeys', input: { keys: [] }) => {
    operations.push(`${name} ${input.keys.length}`)
    return writer.run(name, input)
  }) as Writer['run'],
})

async function createKey(id: number): Promise<KeyText> {
  const key = mintKey()
  const digest = digestKey(key, ring.newest).toString('hex')
  const keyFields = { suffix: 'x', name: 'x', tier: 'pro', qpm: null, existing: false, credit: '0' } as const
  const stored = { id, accountId: id + 1_000, creditRef: id, digest, pepper: ring.newestFingerprint, ...keyFields }
  await writer.run('createKey', stored, { actor: 'test' })
  return key
}

const rotate = (): void => ring.replace([new Secret(newPepper), ...ring.all])
const find = async (key: KeyText): Promise<number | undefined> =>
  (await finder.find(digestKey(key, ring.newest), key))?.id
const hasNewDigest = (key: KeyText): boolean => reader.findKey(digestKey(key, ring.newest)) !== undefined

test('no digest is written while there is one pepper', async () => {
  const key = await createKey(11)
  expect([await find(key), await find(mintKey())]).toEqual([11, undefined])
  expect(operations).toEqual([])
})

test('a key with an older pepper is found, and gets a new digest once', async () => {
  const key = await createKey(11)
  rotate()
  for (let call = 0; call < 20; call++) expect(await find(key)).toBe(11)
  await until(() => hasNewDigest(key), 'the key has its new digest')
  expect(await find(key)).toBe(11)
  expect([await find(mintKey()), operations]).toEqual([undefined, ['redigestKeys 1']])
})

test('a key whose digest was just replaced is found', async () => {
  const key = await createKey(11)
  rotate()
  expect(await find(key)).toBe(11)
  await until(() => hasNewDigest(key), 'the key has its new digest')
  // This finder looks up the new digest just before it is written.
  const late = new KeyFinder({
    reader: { findKey: () => undefined, findKeyOfAny: digests => reader.findKeyOfAny(digests) },
    writer: countingWriter(),
    pepper: ring,
  })
  expect((await late.find(digestKey(key, ring.newest), key))?.id).toBe(11)
  expect(operations).toEqual(['redigestKeys 1'])
})

test('a digest that has changed meanwhile is not overwritten', async () => {
  const key = await createKey(11)
  const [from, to] = ['ab'.repeat(32), 'cd'.repeat(32)]
  const stale = { id: 11, from, to, pepper: 'aabbccdd' }
  expect(await writer.run('redigestKeys', { keys: [stale] })).toEqual({ done: 'redigested', count: 0 })
  expect(await find(key)).toBe(11)
})

test('new digests of many keys are written in batches', async () => {
  const keys = await Promise.all(Array.from({ length: 150 }, (_, index) => createKey(index + 11)))
  rotate()
  expect(await Promise.all(keys.map(find))).toEqual(keys.map((_, index) => index + 11))
  await until(() => keys.every(hasNewDigest), 'all keys have their new digests')
  expect(operations.length).toBeLessThan(10)
})

test('a new digest that could not be written is written with the next one', async () => {
  const [first, second] = [await createKey(11), await createKey(12)]
  let isStorageFull = true
  const run = ((name: 'redigestKeys', input: { keys: [] }) =>
    isStorageFull ? Promise.reject(new Refusal('storage_full', 'x')) : writer.run(name, input)) as Writer['run']
  finder = new KeyFinder({ reader, writer: { run }, pepper: ring })
  rotate()
  expect(await find(first)).toBe(11)
  await Bun.sleep(0)
  isStorageFull = false
  expect([hasNewDigest(first), await find(second)]).toEqual([false, 12])
  await until(() => hasNewDigest(first) && hasNewDigest(second), 'both keys have their new digests')
})

test('new digests that wait are dropped when the peppers change', async () => {
  const key = await createKey(11)
  rotate()
  const gate = Promise.withResolvers<void>()
  const run = (async (name: 'redigestKeys', input: { keys: [] }) => {
    await gate.promise
    operations.push(`${input.keys.length}`)
    return await writer.run(name, input)
  }) as Writer['run']
  finder = new KeyFinder({ reader, writer: { run }, pepper: ring })
  const others = await Promise.all([createKey(12), createKey(13)])
  ring.replace([new Secret('g'.repeat(40)), ...ring.all])
  expect(await Promise.all([key, ...others].map(find))).toEqual([11, 12, 13])
  finder.clearPending()
  gate.resolve()
  await until(() => hasNewDigest(key), 'the running operation has ended')
  expect([...others].map(hasNewDigest)).toEqual([false, false])
})

test('a key is always found, however often its digest changes during the lookup', async () => {
  const key = await createKey(11)
  rotate()
  const [to, from] = ring.all.map(pepper => digestKey(key, pepper)) as [Buffer, Buffer]
  let isStopped = false
  const rewriting = (async () => {
    for (let [current, next] = [from, to]; !isStopped; [current, next] = [next, current]) {
      const change = { id: 11, from: current.toString('hex'), to: next.toString('hex'), pepper: ring.newestFingerprint }
      await writer.run('redigestKeys', { keys: [change] })
    }
  })()
  let misses = 0
  for (let round = 0; round < 200; round++) {
    for (let lookup = 0; lookup < 50; lookup++) if (reader.findKeyOfAny([to, from]) === undefined) misses++
    await Bun.sleep(0)
  }
  isStopped = true
  await rewriting
  expect(misses).toBe(0)
})
