// Envelopes open unchanged, at their own location and with their own key, or not at all.

import { describe, expect, test } from 'bun:test'
import { fingerprintIn, Seal, SealError } from './seal.ts'
import { Secret } from './secret.ts'
import { fingerprintOf } from './secret-fingerprint.ts'
import { buildSecretRing, SecretRing } from './secret-ring.ts'

const seal = new Seal(buildSecretRing('a'.repeat(43)))
const place = { table: 'kept_answer', row: 7, column: 'sealed' }

describe('an envelope', () => {
  test.each([0, 1, 15, 16, 17, 100_000])('of %i bytes gives them back, and shows none of them', size => {
    const bytes = Buffer.alloc(size, 'secret words ')
    const closed = seal.seal(place, bytes)
    expect(seal.open(place, closed)).toEqual(bytes)
    expect(closed.includes('secret')).toBe(false)
    expect(closed.length).toBe(size + 33)
  })

  test('is different each time', () => {
    const bytes = Buffer.from('the same')
    expect(seal.seal(place, bytes)).not.toEqual(seal.seal(place, bytes))
  })

  test('opens with a new seal of the same secret', () => {
    const again = new Seal(buildSecretRing('a'.repeat(43)))
    expect(again.open(place, seal.seal(place, Buffer.from('x'))).toString()).toBe('x')
  })

  test('opens with any key of the ring, and is sealed with the newest', () => {
    const ring = buildSecretRing('a'.repeat(43))
    const own = new Seal(ring)
    const [first, foreign] = [own.seal(place, Buffer.from('x')), new Seal(buildSecretRing('c'.repeat(43)))]
    const [a, b] = [ring.newest, new Secret('b'.repeat(43))]
    ring.replace([b, a])
    const second = own.seal(place, Buffer.from('y'))
    expect([first, second].map(fingerprintIn)).toEqual([fingerprintOf(a), fingerprintOf(b)])
    expect([first, second].map(closed => own.open(place, closed).toString())).toEqual(['x', 'y'])
    expect(() => own.open(place, foreign.seal(place, Buffer.from('z')))).toThrow(
      'an encryption key that is not configured',
    )
    ring.replace([b])
    expect(() => own.open(place, first)).toThrow('an encryption key that is not configured')
    expect(own.open(place, second).toString()).toBe('y')
  })

  test('is bound to its own key, also if both keys are in the ring', () => {
    const [one, other] = [new Secret('a'.repeat(43)), new Secret('b'.repeat(43))]
    const both = new Seal(new SecretRing([one, other]))
    const closed = both.seal(place, Buffer.from('x'))
    Buffer.from(fingerprintOf(other), 'hex').copy(closed, 1)
    expect(() => both.open(place, closed)).toThrow('damaged')
  })

  test('reports an unknown key', () => {
    const other = new Seal(buildSecretRing('b'.repeat(43)))
    expect(() => other.open(place, seal.seal(place, Buffer.from('x')))).toThrow(
      'an encryption key that is not configured',
    )
  })

  test.each([
    ['table', { ...place, table: 'body' }],
    ['row', { ...place, row: 8 }],
    ['column', { ...place, column: 'answer' }],
  ])('does not open in another %s', (_what, elsewhere) => {
    expect(() => seal.open(elsewhere, seal.seal(place, Buffer.from('x')))).toThrow('was copied from another row')
  })

  test('does not open when any bit of it is changed', () => {
    const closed = seal.seal(place, Buffer.from('some words'))
    for (let at = 0; at < closed.length; at++) {
      const changed = Buffer.from(closed)
      changed[at]! ^= 1
      expect(() => seal.open(place, changed), `byte ${at}`).toThrow(SealError)
    }
    for (let length = 0; length < closed.length; length++) {
      expect(() => seal.open(place, closed.subarray(0, length)), `${length} bytes`).toThrow(SealError)
    }
  })
})
