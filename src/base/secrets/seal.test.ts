// Tests that envelopes open unchanged, at their own location and with their own key, or not at all.

import { describe, expect, test } from 'bun:test'
import { fingerprintIn, Seal, SealError } from './seal.ts'
import { Secret } from './secret.ts'
import { fingerprintOf } from './secret-fingerprint.ts'
import { buildSecretRing, SecretRing } from './secret-ring.ts'

const seal = new Seal(buildSecretRing('a'.repeat(43)))
const location = { table: 'kept_answer', row: 7, column: 'sealed' }

describe('an envelope', () => {
  test.each([0, 1, 15, 16, 17, 100_000])('of %i bytes returns them, and does not show them', size => {
    const bytes = Buffer.alloc(size, 'secret words ')
    const envelope = seal.seal(location, bytes)
    expect(seal.open(location, envelope)).toEqual(bytes)
    expect(envelope.includes('secret')).toBe(false)
    expect(envelope.length).toBe(size + 33)
  })

  test('is different each time', () => {
    const bytes = Buffer.from('the same')
    expect(seal.seal(location, bytes)).not.toEqual(seal.seal(location, bytes))
  })

  test('opens with a new seal of the same secret', () => {
    const sameSeal = new Seal(buildSecretRing('a'.repeat(43)))
    expect(sameSeal.open(location, seal.seal(location, Buffer.from('x'))).toString()).toBe('x')
  })

  test('opens with any key of the ring, and is sealed with the newest', () => {
    const ring = buildSecretRing('a'.repeat(43))
    const ringSeal = new Seal(ring)
    const [first, foreign] = [ringSeal.seal(location, Buffer.from('x')), new Seal(buildSecretRing('c'.repeat(43)))]
    const [a, b] = [ring.newest, new Secret('b'.repeat(43))]
    ring.replace([b, a])
    const second = ringSeal.seal(location, Buffer.from('y'))
    expect([first, second].map(fingerprintIn)).toEqual([fingerprintOf(a), fingerprintOf(b)])
    expect([first, second].map(envelope => ringSeal.open(location, envelope).toString())).toEqual(['x', 'y'])
    expect(() => ringSeal.open(location, foreign.seal(location, Buffer.from('z')))).toThrow(
      'an encryption key that is not configured',
    )
    ring.replace([b])
    expect(() => ringSeal.open(location, first)).toThrow('an encryption key that is not configured')
    expect(ringSeal.open(location, second).toString()).toBe('y')
  })

  test('is bound to its own key, also if both keys are in the ring', () => {
    const [first, second] = [new Secret('a'.repeat(43)), new Secret('b'.repeat(43))]
    const ringOfBoth = new Seal(new SecretRing([first, second]))
    const envelope = ringOfBoth.seal(location, Buffer.from('x'))
    Buffer.from(fingerprintOf(second), 'hex').copy(envelope, 1)
    expect(() => ringOfBoth.open(location, envelope)).toThrow('damaged')
  })

  test('reports an unknown key', () => {
    const other = new Seal(buildSecretRing('b'.repeat(43)))
    expect(() => other.open(location, seal.seal(location, Buffer.from('x')))).toThrow(
      'an encryption key that is not configured',
    )
  })

  test.each([
    ['table', { ...location, table: 'body' }],
    ['row', { ...location, row: 8 }],
    ['column', { ...location, column: 'answer' }],
  ])('does not open in another %s', (_name, otherLocation) => {
    expect(() => seal.open(otherLocation, seal.seal(location, Buffer.from('x')))).toThrow('was copied from another row')
  })

  test('does not open when a bit of any byte is changed, or when it is cut', () => {
    const envelope = seal.seal(location, Buffer.from('some words'))
    for (let index = 0; index < envelope.length; index++) {
      const changed = Buffer.from(envelope)
      changed[index]! ^= 1
      expect(() => seal.open(location, changed), `byte ${index}`).toThrow(SealError)
    }
    for (let length = 0; length < envelope.length; length++) {
      expect(() => seal.open(location, envelope.subarray(0, length)), `${length} bytes`).toThrow(SealError)
    }
  })
})
