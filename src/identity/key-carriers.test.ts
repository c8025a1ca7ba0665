// Where a request may have a key, and which one counts if there are several.

import { describe, expect, test } from 'bun:test'
import { findKey, hasKeyValue, hasServiceToken } from './key-carriers.ts'

type Sent = Readonly<Record<string, string>>

/** `?key` stands for the query, everything else for a header. */
const carriers = (sent: Sent) => ({
  header: (name: string) => sent[name],
  query: (name: string) => sent[`?${name}`] ?? null,
})
const find = (sent: Sent): string | undefined => findKey(carriers(sent))

const order = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key', '?key'] as const
const value = (carrier: string, key: string): string => (carrier === 'authorization' ? `Bearer ${key}` : key)

test.each(order)('%s carries a key', carrier => {
  expect(find({ [carrier]: value(carrier, 'wk-a') })).toBe('wk-a')
})

test.each(['Bearer wk-a', 'bearer wk-a', 'BEARER wk-a', 'Bearer   wk-a', ' Bearer wk-a '])('%j is a bearer', text => {
  expect(find({ authorization: text.trim() })).toBe('wk-a')
})

test.each(['Basic wk-a', 'Bearer sk-a', 'Bearer', 'Bearer ', 'Bearerwk-a', 'Token wk-a', '', 'Bearer WK-a'])(
  '%j is none of ours',
  text => {
    expect(find({ authorization: text })).toBeUndefined()
  },
)

describe('of two', () => {
  const pairs = order.flatMap((first, at) => order.slice(at + 1).map(second => [first, second] as const))

  test.each(pairs)('%s counts before %s', (first, second) => {
    expect(find({ [second]: value(second, 'wk-b'), [first]: value(first, 'wk-a') })).toBe('wk-a')
  })

  test.each(pairs)('%s with another vendor’s key is skipped for %s', (first, second) => {
    expect(find({ [first]: value(first, 'sk-other'), [second]: value(second, 'wk-b') })).toBe('wk-b')
  })
})

test('detects whether any key was sent', () => {
  expect(hasKeyValue(carriers({}))).toBe(false)
  expect(hasKeyValue(carriers({ authorization: '', '?key': '' }))).toBe(false)
  for (const carrier of order) expect(hasKeyValue(carriers({ [carrier]: 'x' }))).toBe(true)
})

test('detects a service token in each place of a key', () => {
  for (const carrier of order) expect(hasServiceToken(carriers({ [carrier]: value(carrier, 'wst-a') }))).toBe(true)
  for (const carrier of order) expect(hasServiceToken(carriers({ [carrier]: value(carrier, 'wk-wst-a') }))).toBe(false)
})
