// How much work a caller without a key can cause: none with a malformed key, a little with a well-formed one.

import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Refusal } from '../../src/base/errors.ts'
import { buildSecretRing } from '../../src/base/secrets/secret-ring.ts'
import { KeyDirectory } from '../../src/identity/key-directory.ts'
import { digestKey, mintKey } from '../../src/identity/key-format.ts'
import { buildAuthenticate } from '../../src/pipeline/10-authenticate.ts'
import type { KeyRow } from '../../src/store/engine/reader.ts'

const pepper = buildSecretRing('p'.repeat(32))
const flags = { revoked: false, strictCap: false, strict: false, keepsBodies: false, explains: false }
const rights = { allows: null, accountAllows: null, denies: null, requires: null }
const bounded = { disabled: false, expiresMs: null, untilMs: null, endpoints: null, addresses: null }
const counted = { qpm: 60, limitsKeyId: 1, hasOwnLimit: false }
const owned = { id: 1, version: 1, accountId: 1, tier: 'pro', pricePerMille: 1000 }
const row: KeyRow = { ...owned, ...counted, ...flags, ...rights, ...bounded }

function bench() {
  const rows = new Map<string, KeyRow>()
  const directory = { finds: 0, nowMs: 0, rows }
  const keys = new KeyDirectory({
    find(digest) {
      directory.finds++
      return rows.get(Buffer.from(digest).toString('latin1'))
    },
    nowMs: () => directory.nowMs,
    knownMax: 100,
    unknownMax: 10_000,
    unknownMs: 5_000,
  })
  const authenticate = buildAuthenticate({ keys, pepper, dateMs: () => 0 })
  const tryKey = async (text: string): Promise<string> => {
    const header = (name: string): string | undefined => (name === 'x-api-key' ? text : undefined)
    try {
      return (await authenticate({ header, query: () => null, address: () => '', endpoint: 'chat' })).tier
    } catch (fault) {
      return fault instanceof Refusal ? fault.code : String(fault)
    }
  }
  const issue = (): string => {
    const key = mintKey()
    rows.set(digestKey(key, pepper.newest).toString('latin1'), row)
    return key
  }
  return { directory, tryKey, issue }
}

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const randomText = (): string => Array.from(randomBytes(36), byte => base62[byte % 62]).join('')

test('ten thousand well-formed keys with a wrong checksum cause no look-up at all', async () => {
  const { directory, tryKey } = bench()
  for (let time = 0; time < 10_000; time++) expect(await tryKey(`wk-${randomText()}`)).toBe('key_invalid')
  expect(directory.finds).toBe(0)
})

test('a repeated unknown key is looked up only from time to time', async () => {
  const { directory, tryKey } = bench()
  const unknown = mintKey()
  for (let time = 0; time < 1_000; time++) expect(await tryKey(unknown)).toBe('key_invalid')
  expect(directory.finds).toBe(1)
})

test('guesses do not delay a valid key, cached or not', async () => {
  const { tryKey, issue } = bench()
  for (let time = 0; time < 200; time++) expect(await tryKey(mintKey())).toBe('key_invalid')
  expect(await tryKey(issue())).toBe('pro')
})

test(`a request without a key gets "missing", one with another vendor's key gets "invalid"`, async () => {
  const { tryKey } = bench()
  expect(await tryKey('')).toBe('key_missing')
  expect(await tryKey('sk-0123456789')).toBe('key_invalid')
})
