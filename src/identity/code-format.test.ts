// Redemption codes: random, readable, and recognised however they were copied.

import { expect, test } from 'bun:test'
import { Secret } from '../base/secrets/secret.ts'
import { digestCode, mintCode, parseCode } from './code-format.ts'

const pepper = new Secret('p'.repeat(32))

test('redemption codes have one format and are never the same', () => {
  const codes = Array.from({ length: 2_000 }, () => mintCode())
  expect(new Set(codes).size).toBe(2_000)
  for (const code of codes) {
    expect(code).toMatch(/^wr(-[0-9A-HJKMNP-TV-Z]{4}){4}$/)
    expect(parseCode(code)).toBe(code)
  }
  // Every character occurs at every position: 80 bits are random.
  for (let position = 3; position < 22; position++) {
    if (codes[0]![position] !== '-') expect(new Set(codes.map(code => code[position])).size).toBe(32)
  }
})

test.each([
  ['wr-0123-4567-89ab-cdef', 'wr-0123-4567-89AB-CDEF'],
  [' WR-O1I3-4567-89AB-CDEL ', 'wr-0113-4567-89AB-CDE1'],
  ['wr0123456789ABCDEF', 'wr-0123-4567-89AB-CDEF'],
])('the redemption code %p is read as %p', (text, code) => expect(parseCode(text) as string).toBe(code))

const invalid = ['', 'wr-', 'wr-0123-4567-89AB-CDE', 'wr-0123-4567-89AB-CDEFG', 'wr-0123-4567-89AB-CDEU']
test.each([...invalid, 'wk-0123-4567-89AB-CDEF'])('%p is not a redemption code', text =>
  expect(parseCode(text)).toBeUndefined(),
)

test('redemption codes are stored as digests that need the pepper', () => {
  const code = parseCode('wr-0123-4567-89AB-CDEF')!
  expect(digestCode(code, pepper)).toHaveLength(32)
  expect(digestCode(code, pepper)).toEqual(digestCode(code, pepper))
  expect(digestCode(code, new Secret('q'.repeat(32)))).not.toEqual(digestCode(code, pepper))
})
