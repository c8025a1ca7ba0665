// A key is found whichever pepper its digest has, and gets a digest with the newest pepper once.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../test/support/gateway.ts'
import { Refusal } from '../base/errors.ts'
import { Secret } from '../base/secrets/secret.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'
import { buildSecretRing } from '../base/secrets/secret-ring.ts'
import { Reader } from '../store/engine/reader.ts'
import { Writer } from '../store/engine/writer.ts'
import { KeyFinder } from './key-finder.ts'
import type { KeyText } from './key-format.ts'
import { digestKey, mintKey } from './key-format.ts'

const [old, fresh] = ['o'.repeat(40), 'f'.repeat(40)]

let folder: string
let writer: Writer
let reader: Reader
let ring: SecretRing
let ops: string[]
let finder: KeyFinder

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-finder-'))
  ;[writer] = await Writer.open({ path: join(folder, 'weir.db'), ballastBytes: 0 }, () => {})
  reader = new Reader(join(folder, 'weir.db'))
  ring = buildSecretRing(old)
  ops = []
  finder = new KeyFinder({ reader, writer: counted(), pepper: ring })
})
afterEach(async () => {
  await finder.close()
  reader.close()
  await writer.close()
  rmSync(folder, { recursive: true })
})

const counted = (): Pick<Writer, 'run'> => ({
  run: ((name: 'redigestKeys', input: { keys: [] }) => {
    ops.push(`${name} ${input.keys.length}`)
    return writer.run(name, input)
  }) as Writer['run'],
})

async function made(id: number): Promise<KeyText> {
  const key = mintKey()
  const digest = digestKey(key, ring.newest).toString('hex')
  const about = { suffix: 'x', name: 'x', tier: 'pro', qpm: null, existing: false, credit: '0' } as const
  const stored = { id, accountId: id + 1_000, creditRef: id, digest, pepper: ring.newestFingerprint, ...about }
  await writer.run('createKey', stored, { actor: 'test' })
  return key
}

const rotate = (): void => ring.replace([new Secret(fresh), ...ring.all])
const find = (key: KeyText): number | undefined => finder.find(digestKey(key, ring.newest), key)?.id
const isFresh = (key: KeyText): boolean => reader.findKey(digestKey(key, ring.newest)) !== undefined

test('with one pepper nothing is written', async () => {
  const key = await made(11)
  expect([find(key), find(mintKey())]).toEqual([11, undefined])
  expect(ops).toEqual([])
})

test('a key with an older pepper is found, and gets a new digest once', async () => {
  const key = await made(11)
  rotate()
  for (let call = 0; call < 20; call++) expect(find(key)).toBe(11)
  await until(() => isFresh(key), 'it is digested anew')
  expect(find(key)).toBe(11)
  expect([find(mintKey()), ops]).toEqual([undefined, ['redigestKeys 1']])
})

test('a key whose digest was just replaced is found', async () => {
  const key = await made(11)
  rotate()
  expect(find(key)).toBe(11)
  await until(() => isFresh(key), 'it is digested anew')
  // The first look was a moment before that.
  const late = new KeyFinder({
    reader: { findKey: () => undefined, findKeyOfAny: digests => reader.findKeyOfAny(digests) },
    writer: counted(),
    pepper: ring,
  })
  expect(late.find(digestKey(key, ring.newest), key)?.id).toBe(11)
  expect(ops).toEqual(['redigestKeys 1'])
})

test('a digest that has changed meanwhile is not overwritten', async () => {
  const key = await made(11)
  const [from, to] = ['ab'.repeat(32), 'cd'.repeat(32)]
  const stale = { id: 11, from, to, pepper: 'aabbccdd' }
  expect(await writer.run('redigestKeys', { keys: [stale] })).toEqual({ done: 'redigested', count: 0 })
  expect(find(key)).toBe(11)
})

test('many keys are written in batches', async () => {
  const keys = await Promise.all(Array.from({ length: 150 }, (_, at) => made(at + 11)))
  rotate()
  expect(keys.map(find)).toEqual(keys.map((_, at) => at + 11))
  await until(() => keys.every(isFresh), 'all are digested anew')
  expect(ops.length).toBeLessThan(10)
})

test('a digest that could not be written is written with the next', async () => {
  const [one, other] = [await made(11), await made(12)]
  let isAway = true
  const run = ((name: 'redigestKeys', input: { keys: [] }) =>
    isAway ? Promise.reject(new Refusal('storage_full', 'x')) : writer.run(name, input)) as Writer['run']
  finder = new KeyFinder({ reader, writer: { run }, pepper: ring })
  rotate()
  expect(find(one)).toBe(11)
  await Bun.sleep(0)
  isAway = false
  expect([isFresh(one), find(other)]).toEqual([false, 12])
  await until(() => isFresh(one) && isFresh(other), 'both are digested anew')
})

test('digests that wait are dropped when the peppers change', async () => {
  const key = await made(11)
  rotate()
  const gate = Promise.withResolvers<void>()
  const run = (async (name: 'redigestKeys', input: { keys: [] }) => {
    await gate.promise
    ops.push(`${input.keys.length}`)
    return await writer.run(name, input)
  }) as Writer['run']
  finder = new KeyFinder({ reader, writer: { run }, pepper: ring })
  const others = await Promise.all([made(12), made(13)])
  ring.replace([new Secret('g'.repeat(40)), ...ring.all])
  expect([key, ...others].map(find)).toEqual([11, 12, 13])
  finder.clearPending()
  gate.resolve()
  await until(() => isFresh(key), 'what was under way is done')
  expect([...others].map(isFresh)).toEqual([false, false])
})

test('a key is always found, however often its digest changes during the lookup', async () => {
  const key = await made(11)
  rotate()
  const [to, from] = ring.all.map(pepper => digestKey(key, pepper)) as [Buffer, Buffer]
  let isOver = false
  const moving = (async () => {
    for (let [at, next] = [from, to]; !isOver; [at, next] = [next, at]) {
      const moved = { id: 11, from: at.toString('hex'), to: next.toString('hex'), pepper: ring.newestFingerprint }
      await writer.run('redigestKeys', { keys: [moved] })
    }
  })()
  let misses = 0
  for (let round = 0; round < 200; round++) {
    for (let look = 0; look < 50; look++) if (reader.findKeyOfAny([to, from]) === undefined) misses++
    await Bun.sleep(0)
  }
  isOver = true
  await moving
  expect(misses).toBe(0)
})
