// Conversation keys: equal for equal input, and different otherwise.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { conversationKey } from './conversation-key.ts'

test('the same account, model and beginning give the same key, and any other gives another', () => {
  const inputs = fc.tuple(fc.nat(1_000), fc.string({ maxLength: 30 }), fc.string({ maxLength: 3_000 }))
  fc.assert(
    fc.property(inputs, inputs, (one, other) => {
      expect(conversationKey(...one)).toBe(conversationKey(...one))
      const isSame = one.every((value, at) => value === other[at])
      expect(conversationKey(...one) === conversationKey(...other)).toBe(isSame)
    }),
  )
})

test('a hundred thousand conversations have as many keys, of a few bytes each', () => {
  const system = 'You are helpful. '.repeat(40)
  const keys = new Set(Array.from({ length: 100_000 }, (_none, at) => conversationKey(7, 'a/b', `${system}\n${at}`)))
  expect(keys.size).toBeGreaterThan(99_990)
  for (const key of keys) expect(key.length).toBeLessThan(32)
})
