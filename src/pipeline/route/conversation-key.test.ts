// Conversation keys and ids: equal for equal input, and different otherwise.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import { newAttempt } from '../exchange.ts'
import { buildConversationId, conversationKey } from './conversation-key.ts'

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

type Parts = Parameters<ReturnType<typeof buildConversationId>>

/** A call of an account that begins with this text. */
function callOf(accountId: number, text: string, more: object = {}): Parts {
  const protocol = { begins: (json: { readonly text: string }) => json.text }
  const exchange = { call: { model: 'a/b', json: { text } }, protocol, routing: {}, attempt: newAttempt(), ...more }
  return [{ permit: { caller: { accountId } } }, exchange] as unknown as Parts
}

test('the id is 16 hex digits: other for another account, another text and another secret', () => {
  const ring = buildSecretRing('p'.repeat(32))
  const idOf = buildConversationId(ring)
  const id = idOf(...callOf(7, 'hello'))!
  expect(id).toMatch(/^[0-9a-f]{16}$/)
  expect(idOf(...callOf(7, 'hello'))).toBe(id)
  const others = [callOf(8, 'hello'), callOf(7, 'hallo')].map(call => idOf(...call))
  const elsewhere = buildConversationId(buildSecretRing('q'.repeat(32)))(...callOf(7, 'hello'))
  ring.replace(buildSecretRing('r'.repeat(32), 'p'.repeat(32)).all)
  const afterRotation = idOf(...callOf(7, 'hello'))
  expect(new Set([id, ...others, elsewhere, afterRotation]).size).toBe(5)
})

test('a call has no id if its dialect has no conversations, or if only the upstream knows the earlier turns', () => {
  const idOf = buildConversationId(buildSecretRing('p'.repeat(32)))
  expect(idOf(...callOf(7, 'hello', { protocol: {} }))).toBeUndefined()
  const call = {
    model: 'a/b',
    json: { text: 'and then?' },
    state: { previous: 'resp_1', store: true, background: false },
  }
  expect(idOf(...callOf(7, '', { call }))).toMatch(/^[0-9a-f]{16}$/)
  const attempt = newAttempt({ previousResponseId: 'resp_up' } as never)
  expect(idOf(...callOf(7, '', { call, attempt }))).toBeUndefined()
})

test('the start of a conversation is read once for each call', () => {
  let reads = 0
  const [route, exchange] = callOf(7, '', { protocol: { begins: () => `read ${++reads}` } })
  const idOf = buildConversationId(buildSecretRing('p'.repeat(32)))
  expect(idOf(route, exchange)).toBe(idOf(route, exchange)!)
  expect(reads).toBe(1)
})
