// Tests where a request may have a key, and which one counts if there are several.

import { describe, expect, test } from 'bun:test'
import { findKey, hasKeyValue, hasServiceToken } from './key-carriers.ts'

type RequestFields = Readonly<Record<string, string>>

/** A name with `?` is a query parameter, every other name a header. */
const carriers = (fields: RequestFields) => ({
  header: (name: string) => fields[name],
  query: (name: string) => fields[`?${name}`] ?? null,
})
const find = (fields: RequestFields): string | undefined => findKey(carriers(fields))

const order = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key', '?key'] as const
const value = (carrier: string, key: string): string => (carrier === 'authorization' ? `Bearer ${key}` : key)

test.each(order)('%s carries a key', carrier => {
  expect(find({ [carrier]: value(carrier, 'wk-a') })).toBe('wk-a')
})

test.each(['Bearer wk-a', 'bearer wk-a', 'BEARER wk-a', 'Bearer   wk-a', ' Bearer wk-a '])(
  'the Authorization header %j carries a key',
  text => {
    expect(find({ authorization: text.trim() })).toBe('wk-a')
  },
)

test.each(['Basic wk-a', 'Bearer sk-a', 'Bearer', 'Bearer ', 'Bearerwk-a', 'Token wk-a', '', 'Bearer WK-a'])(
  'the Authorization header %j carries no key',
  text => {
    expect(find({ authorization: text })).toBeUndefined()
  },
)

describe('of two keys in a request, that in', () => {
  const pairs = order.flatMap((first, index) => order.slice(index + 1).map(second => [first, second] as const))

  test.each(pairs)('%s counts before that in %s', (first, second) => {
    expect(find({ [second]: value(second, 'wk-b'), [first]: value(first, 'wk-a') })).toBe('wk-a')
  })

  test.each(pairs)('%s is skipped for that in %s if it is the key of another vendor', (first, second) => {
    expect(find({ [first]: value(first, 'sk-other'), [second]: value(second, 'wk-b') })).toBe('wk-b')
  })
})

test('a request has a key value if any carrier is not empty', () => {
  expect(hasKeyValue(carriers({}))).toBe(false)
  expect(hasKeyValue(carriers({ authorization: '', '?key': '' }))).toBe(false)
  for (const carrier of order) expect(hasKeyValue(carriers({ [carrier]: 'x' }))).toBe(true)
})

test('detects a service token in each place of a key', () => {
  for (const carrier of order) expect(hasServiceToken(carriers({ [carrier]: value(carrier, 'wst-a') }))).toBe(true)
  for (const carrier of order) expect(hasServiceToken(carriers({ [carrier]: value(carrier, 'wk-wst-a') }))).toBe(false)
})
