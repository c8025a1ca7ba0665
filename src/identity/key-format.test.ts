// Tests the format of a key: typing errors are found by the checksum, and all other characters are random.

import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { Secret } from '../base/secrets/secret.ts'
import { digestKey, keySuffix, mintKey, parseKey } from './key-format.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const pepper = new Secret('p'.repeat(32))
const seeded = fc.uint8Array({ minLength: 64, maxLength: 64 }).map(seed => {
  let draw = 0
  // The random bytes have all values, also those that minting must discard.
  return mintKey(length => Uint8Array.from({ length }, () => (seed[draw++ % 64]! * 31 + draw * 7) % 256))
})

describe('a minted key', () => {
  test('is wk- and 36 characters, and is read back as itself', () => {
    fc.assert(
      fc.property(seeded, key => {
        expect(key).toMatch(/^wk-[0-9A-Za-z]{36}$/)
        expect(parseKey(key)).toBe(key)
      }),
    )
  })

  test('ends with the CRC-32 of the rest, in base 62', () => {
    fc.assert(
      fc.property(seeded, key => {
        const digits = [...key.slice(-6)].reduce((sum, digit) => sum * 62 + BASE62.indexOf(digit), 0)
        expect(digits).toBe(crc32(key.slice(0, -6)))
      }),
    )
  })

  test('has every character equally often', () => {
    const counts = new Map<string, number>()
    for (let made = 0; made < 2_000; made++) {
      for (const char of mintKey().slice(3, 33)) counts.set(char, (counts.get(char) ?? 0) + 1)
    }
    expect(counts.size).toBe(62)
    // Each occurs 968 times on average with a deviation of 31: nine deviations do not happen by chance.
    for (const [char, count] of counts) expect([char, count > 690 && count < 1_250]).toEqual([char, true])
  })

  test('is different each time', () => {
    expect(new Set(Array.from({ length: 5_000 }, () => mintKey())).size).toBe(5_000)
  })
})

describe('parseKey refuses', () => {
  test('every typo of one character', () => {
    const key = mintKey()
    for (let index = 0; index < key.length; index++) {
      for (const char of `${BASE62}-_ ä`) {
        if (char === key[index]) continue
        const typo = key.slice(0, index) + char + key.slice(index + 1)
        expect([typo, parseKey(typo)]).toEqual([typo, undefined])
      }
    }
  })

  test('swapped neighbours, and missing or doubled characters', () => {
    fc.assert(
      fc.property(seeded, fc.nat(37), (key, index) => {
        const swapped = key.slice(0, index) + key[index + 1] + key[index] + key.slice(index + 2)
        if (swapped !== key) expect(parseKey(swapped)).toBeUndefined()
        expect(parseKey(key.slice(0, index) + key.slice(index + 1))).toBeUndefined()
        expect(parseKey(key.slice(0, index) + key[index] + key.slice(index))).toBeUndefined()
      }),
    )
  })

  test('random guesses', () => {
    const guesses = fc.string({ unit: fc.constantFrom(...BASE62), minLength: 36, maxLength: 36 })
    fc.assert(
      fc.property(guesses, guess => expect(parseKey(`wk-${guess}`)).toBeUndefined()),
      { numRuns: 5_000 },
    )
  })

  test.each([
    ...['', 'wk-', 'wk', 'sk-', 'wk-\u0000'],
    ...[`WK-${'0'.repeat(36)}`, `wk-${'0'.repeat(36)}`, `wk-${'é'.repeat(36)}`],
  ])('%j', text => {
    expect(parseKey(text)).toBeUndefined()
  })

  test('a key with text around it, or with another prefix or case', () => {
    const key = mintKey()
    const others = [key.replace('wk-', 'sk-'), key.toUpperCase()]
    for (const text of [` ${key}`, `${key} `, `${key}\n`, `Bearer ${key}`, ...others]) {
      expect(parseKey(text)).toBeUndefined()
    }
  })
})

describe('the stored digest of a key', () => {
  test('depends on the key and on the pepper', () => {
    const [key, otherKey] = [mintKey(), mintKey()]
    expect(digestKey(key, pepper)).toEqual(digestKey(key, pepper))
    expect(digestKey(key, pepper)).not.toEqual(digestKey(otherKey, pepper))
    expect(digestKey(key, pepper)).not.toEqual(digestKey(key, new Secret('q'.repeat(32))))
    expect(digestKey(key, pepper)).toHaveLength(32)
  })

  test('is not a plain hash of the key, nor of key and pepper', () => {
    const key = mintKey()
    const texts = [key, pepper.reveal() + key, key + pepper.reveal(), key.slice(3)]
    for (const text of texts) {
      expect(digestKey(key, pepper)).not.toEqual(createHash('sha256').update(text).digest())
    }
  })

  test('is shown with a suffix of four characters of the checksum', () => {
    const key = mintKey()
    expect(keySuffix(key)).toBe(key.slice(35))
    expect(keySuffix(key)).toHaveLength(4)
  })
})
