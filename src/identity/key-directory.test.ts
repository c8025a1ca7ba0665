// Tests the cache of keys: bounded, expiring, and never outdated after a change.

import { describe, expect, test } from 'bun:test'
import type { KeyRow } from '../store/engine/reader.ts'
import { KeyDirectory } from './key-directory.ts'
import { mintKey } from './key-format.ts'

const row = (id: number, revoked = false): KeyRow => ({
  id,
  version: 1,
  accountId: id,
  tier: 'pro',
  qpm: 60,
  limitsKeyId: 1,
  hasOwnLimit: false,
  pricePerMille: 1000,
  revoked,
  strictCap: false,
  strict: false,
  allows: null,
  accountAllows: null,
  denies: null,
  requires: null,
  explains: false,
  disabled: false,
  expiresMs: null,
  untilMs: null,
  endpoints: null,
  addresses: null,
  keepsBodies: false,
})
const digest = (name: number): Buffer => Buffer.from(`digest ${name}`.padEnd(32))

const key = mintKey()

interface TestDirectory {
  readonly keys: KeyDirectory
  readonly rows: Map<string, KeyRow>
  readonly lookups: string[]
  nowMs: number
  put(name: number, value: KeyRow): void
}

function openDirectory(bounds: { knownMax?: number; unknownMax?: number } = {}): TestDirectory {
  const rows = new Map<string, KeyRow>()
  const lookups: string[] = []
  const directory: TestDirectory = {
    rows,
    lookups,
    nowMs: 0,
    put: (name, value) => void rows.set(digest(name).toString('latin1'), value),
    keys: new KeyDirectory({
      find(keyDigest) {
        const name = Buffer.from(keyDigest).toString('latin1')
        lookups.push(name)
        return rows.get(name)
      },
      nowMs: () => directory.nowMs,
      knownMax: bounds.knownMax ?? 10,
      unknownMax: bounds.unknownMax ?? 10,
      unknownMs: 5_000,
    }),
  }
  return directory
}

describe('a known key', () => {
  test('is read from the store once', async () => {
    const { keys, lookups, put } = openDirectory()
    put(1, row(1))
    expect(keys.getCached(digest(1))).toBeUndefined()
    expect(await keys.lookUp(digest(1), key)).toEqual(row(1))
    for (let call = 0; call < 100; call++) expect(keys.getCached(digest(1))).toEqual(row(1))
    expect(lookups).toHaveLength(1)
  })

  test('is read again after any change', async () => {
    const { keys, put } = openDirectory()
    put(1, row(1))
    await keys.lookUp(digest(1), key)
    put(1, row(1, true))
    keys.clear()
    expect(keys.getCached(digest(1))).toBeUndefined()
    expect((await keys.lookUp(digest(1), key))?.revoked).toBe(true)
    expect(keys.getCached(digest(1))).toEqual(row(1, true))
  })

  test('is distinguished from keys with similar digests', async () => {
    const { keys, put } = openDirectory()
    put(1, row(1))
    await keys.lookUp(digest(1), key)
    expect(keys.getCached(Buffer.from(digest(1)).fill(0xff, 31))).toBeUndefined()
  })
})

describe('a look-up that takes a while', () => {
  function openSlowly() {
    const answers: ((row: KeyRow | undefined) => void)[] = []
    const find = (): Promise<KeyRow | undefined> => new Promise(resolve => answers.push(resolve))
    const keys = new KeyDirectory({ find, nowMs: () => 0, knownMax: 10, unknownMax: 10, unknownMs: 5_000 })
    return { keys, answers }
  }

  test('is shared by all callers of the key', async () => {
    const { keys, answers } = openSlowly()
    const found = [1, 1, 2, 1].map(name => keys.lookUp(digest(name), key))
    expect(answers).toHaveLength(2)
    answers[0]!(row(1))
    answers[1]!(undefined)
    expect((await Promise.all(found)).map(known => known?.id)).toEqual([1, 1, undefined, 1])
    void keys.lookUp(digest(2), key)
    expect(answers).toHaveLength(3)
  })

  test('is not shared with callers after a change', async () => {
    const { keys, answers } = openSlowly()
    const before = keys.lookUp(digest(1), key)
    keys.clear()
    const after = [keys.lookUp(digest(1), key), keys.lookUp(digest(1), key)]
    answers[0]!(row(1))
    expect((await before)?.revoked).toBe(false)
    const later = keys.lookUp(digest(1), key)
    expect(answers).toHaveLength(2)
    answers[1]!(row(1, true))
    expect((await Promise.all([...after, later])).map(known => known?.revoked)).toEqual([true, true, true])
    expect(keys.getCached(digest(1))).toEqual(row(1, true))
  })
})

describe('an unknown key', () => {
  test('is cached for a while, and no longer', async () => {
    const directory = openDirectory()
    await directory.keys.lookUp(digest(1), key)
    directory.nowMs = 4_999
    expect(directory.keys.getCached(digest(1))).toBe('unknown')
    directory.nowMs = 5_000
    expect(directory.keys.getCached(digest(1))).toBeUndefined()
    directory.put(1, row(1))
    expect(await directory.keys.lookUp(digest(1), key)).toEqual(row(1))
    expect(directory.keys.getCached(digest(1))).toEqual(row(1))
  })

  test('that is created meanwhile is known immediately', async () => {
    const { keys, put } = openDirectory()
    await keys.lookUp(digest(1), key)
    put(1, row(1))
    keys.clear()
    expect(keys.getCached(digest(1))).toBeUndefined()
    expect(await keys.lookUp(digest(1), key)).toEqual(row(1))
  })

  test('that is looked up again is cached from then on', async () => {
    const directory = openDirectory()
    await directory.keys.lookUp(digest(1), key)
    directory.nowMs = 5_000
    await directory.keys.lookUp(digest(1), key)
    directory.nowMs = 9_999
    expect(directory.keys.getCached(digest(1))).toBe('unknown')
  })
})

describe('the cache', () => {
  test('has a bounded number of keys, and drops the oldest', async () => {
    const { keys, put } = openDirectory({ knownMax: 3, unknownMax: 2 })
    for (let name = 0; name < 100; name++) put(name, row(name))
    for (let name = 0; name < 100; name++) {
      await keys.lookUp(digest(name), key)
      expect(keys.cached).toBeLessThanOrEqual(3)
    }
    for (let name = 1_000; name < 1_100; name++) {
      await keys.lookUp(digest(name), key)
      expect(keys.cached).toBeLessThanOrEqual(5)
    }
    expect(keys.getCached(digest(96))).toBeUndefined()
    expect(keys.getCached(digest(97))).toEqual(row(97))
    expect(keys.getCached(digest(1_097))).toBeUndefined()
    expect(keys.getCached(digest(1_098))).toBe('unknown')
  })

  test('keeps known keys when many unknown keys are looked up', async () => {
    const { keys, put } = openDirectory({ knownMax: 2, unknownMax: 2 })
    put(1, row(1))
    await keys.lookUp(digest(1), key)
    for (let name = 100; name < 200; name++) await keys.lookUp(digest(name), key)
    expect(keys.getCached(digest(1))).toEqual(row(1))
  })

  test('reads a key again that was dropped', async () => {
    const { keys, put, lookups } = openDirectory({ knownMax: 1 })
    put(1, row(1))
    put(2, row(2))
    await keys.lookUp(digest(1), key)
    await keys.lookUp(digest(2), key)
    expect(await keys.lookUp(digest(1), key)).toEqual(row(1))
    expect(lookups).toHaveLength(3)
  })
})

describe('a lookup that is running while a key changes', () => {
  /** A directory whose store answers when the test calls `answer`. */
  function openSlowDirectory(): { keys: KeyDirectory; answer(value: KeyRow | undefined): void } {
    const waiting: ((value: KeyRow | undefined) => void)[] = []
    const keys = new KeyDirectory({
      find: () => new Promise(resolve => waiting.push(resolve)),
      nowMs: () => 0,
      knownMax: 10,
      unknownMax: 10,
      unknownMs: 5_000,
    })
    return { keys, answer: value => waiting.shift()!(value) }
  }

  test('is used once and not cached: it may have read the key before it was revoked', async () => {
    const { keys, answer } = openSlowDirectory()
    const lookup = keys.lookUp(digest(1), key)
    keys.clear()
    answer(row(1))
    expect(await lookup).toEqual(row(1))
    expect(keys.getCached(digest(1))).toBeUndefined()
    expect(keys.cached).toBe(0)
  })

  test('is not cached either if it found nothing: the key may have been created since', async () => {
    const { keys, answer } = openSlowDirectory()
    const lookup = keys.lookUp(digest(1), key)
    keys.clear()
    answer(undefined)
    expect(await lookup).toBeUndefined()
    expect(keys.getCached(digest(1))).toBeUndefined()
  })

  test('is cached if it began after the change', async () => {
    const { keys, answer } = openSlowDirectory()
    const before = keys.lookUp(digest(1), key)
    keys.clear()
    const after = keys.lookUp(digest(1), key)
    answer(row(1))
    answer(row(1, true))
    await Promise.all([before, after])
    expect(keys.getCached(digest(1))).toEqual(row(1, true))
  })
})
