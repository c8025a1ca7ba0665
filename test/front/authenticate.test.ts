// How much work a caller without a key can cause: none for what is malformed, a little for what is well-formed.

import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Refusal } from '../../src/base/errors.ts'
import { Secret } from '../../src/base/secret.ts'
import { KeyDirectory } from '../../src/identity/key-directory.ts'
import { digestKey, mintKey } from '../../src/identity/key-format.ts'
import { buildAuthenticate } from '../../src/pipeline/10-authenticate.ts'
import type { KeyRow } from '../../src/store/reader.ts'

const pepper = new Secret('p'.repeat(32))
const row: KeyRow = { id: 1, accountId: 1, tier: 'pro', qpm: 60, pricePerMille: 1000, revoked: false }

function bench() {
  const rows = new Map<string, KeyRow>()
  const made = { finds: 0, nowMs: 0, rows }
  const keys = new KeyDirectory({
    find(digest) {
      made.finds++
      return rows.get(Buffer.from(digest).toString('latin1'))
    },
    nowMs: () => made.nowMs,
    knownMax: 100,
    unknownMax: 10_000,
    unknownMs: 5_000,
  })
  const authenticate = buildAuthenticate({ keys, pepper, nowMs: () => made.nowMs })
  const tryKey = async (text: string, address = '192.0.2.1'): Promise<string> => {
    const header = (name: string): string | undefined => (name === 'x-api-key' ? text : undefined)
    try {
      return (await authenticate({ header, query: () => null, address: () => address })).tier
    } catch (fault) {
      return fault instanceof Refusal ? fault.code : String(fault)
    }
  }
  const issue = (): string => {
    const key = mintKey()
    rows.set(digestKey(key, pepper).toString('latin1'), row)
    return key
  }
  return { made, tryKey, issue }
}

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const randomText = (): string => Array.from(randomBytes(36), byte => base62[byte % 62]).join('')

test('ten thousand strings of the right shape with a wrong checksum cost no look-up at all', async () => {
  const { made, tryKey } = bench()
  for (let time = 0; time < 10_000; time++) expect(await tryKey(`wk-${randomText()}`)).toBe('key_invalid')
  expect(made.finds).toBe(0)
})

test('a spray of well-formed keys costs twenty look-ups, and then one every three seconds', async () => {
  const { made, tryKey } = bench()
  for (let time = 0; time < 1_000; time++) expect(await tryKey(mintKey())).toBe('key_invalid')
  expect(made.finds).toBe(20)
  for (let second = 0; second < 60; second++) {
    made.nowMs += 1_000
    for (let time = 0; time < 10; time++) await tryKey(mintKey())
  }
  expect(made.finds).toBe(40)
})

test('the same unknown key is looked up once in a while, however often it comes', async () => {
  const { made, tryKey } = bench()
  const unknown = mintKey()
  for (let time = 0; time < 1_000; time++) expect(await tryKey(unknown)).toBe('key_invalid')
  expect(made.finds).toBe(1)
})

test('good keys of the same address still work once they are known, and others from elsewhere at once', async () => {
  const { made, tryKey, issue } = bench()
  const [known, fresh] = [issue(), issue()]
  expect(await tryKey(known)).toBe('pro')
  for (let time = 0; time < 50; time++) await tryKey(mintKey())
  expect(await tryKey(known)).toBe('pro')
  expect(await tryKey(fresh)).toBe('key_invalid')
  expect(await tryKey(fresh, '192.0.2.2')).toBe('pro')
  made.nowMs += 3_000
  expect(await tryKey(issue())).toBe('pro')
})

test('a good key costs its address nothing', async () => {
  const { tryKey, issue } = bench()
  for (let time = 0; time < 200; time++) expect(await tryKey(issue())).toBe('pro')
})

test('no key is missing, another vendor’s is invalid', async () => {
  const { tryKey } = bench()
  expect(await tryKey('')).toBe('key_missing')
  expect(await tryKey('sk-0123456789')).toBe('key_invalid')
})
