// A name is the same for the same, and another for anything else.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { conversationName } from './conversation-key.ts'

test('the same account, model and beginning have one name, and any other has another', () => {
  const asked = fc.tuple(fc.nat(1_000), fc.string({ maxLength: 30 }), fc.string({ maxLength: 3_000 }))
  fc.assert(
    fc.property(asked, asked, (one, other) => {
      expect(conversationName(...one)).toBe(conversationName(...one))
      const isSame = one.every((value, at) => value === other[at])
      expect(conversationName(...one) === conversationName(...other)).toBe(isSame)
    }),
  )
})

test('a hundred thousand conversations have as many names, of a few bytes each', () => {
  const system = 'You are helpful. '.repeat(40)
  const names = new Set(Array.from({ length: 100_000 }, (_none, at) => conversationName(7, 'a/b', `${system}\n${at}`)))
  expect(names.size).toBeGreaterThan(99_990)
  for (const name of names) expect(name.length).toBeLessThan(32)
})
