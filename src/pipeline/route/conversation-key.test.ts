// Conversation keys: equal for equal input, and different otherwise.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { conversationKey } from './conversation-key.ts'

test('the key is the same for the same account, model and start of a conversation, and different otherwise', () => {
  const inputs = fc.tuple(fc.nat(1_000), fc.string({ maxLength: 30 }), fc.string({ maxLength: 3_000 }))
  fc.assert(
    fc.property(inputs, inputs, (one, other) => {
      expect(conversationKey(...one)).toBe(conversationKey(...one))
      const isSame = one.every((value, index) => value === other[index])
      expect(conversationKey(...one) === conversationKey(...other)).toBe(isSame)
    }),
  )
})

test('a hundred thousand conversations have a hundred thousand different keys of a few bytes each', () => {
  const system = 'You are helpful. '.repeat(40)
  const keys = new Set(
    Array.from({ length: 100_000 }, (_none, index) => conversationKey(7, 'a/b', `${system}\n${index}`)),
  )
  expect(keys.size).toBeGreaterThan(99_990)
  for (const key of keys) expect(key.length).toBeLessThan(32)
})
