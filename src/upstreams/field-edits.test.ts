// Tests that named fields of a request are changed, and no other byte.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { rewriteFields } from './field-edits.ts'
import { fieldsOf, overrideFields } from './overrides.ts'

const rewrite = (text: string, edits: Record<string, string | undefined>): string =>
  rewriteFields(Buffer.from(text), new Map(Object.entries(edits))).toString('utf8')

test.each([
  ['{"a":1}', { a: '2' }, '{"a":2}'],
  [' { "a" : 1 , "b":[1, {"c":2}] } ', { a: 'null' }, ' { "a" : null , "b":[1, {"c":2}] } '],
  ['{"a":1,"b":2,"c":3}', { b: undefined }, '{"a":1,"c":3}'],
  ['{"a":1,"b":2}', { a: undefined }, '{"b":2}'],
  ['{"a":1, "b":2 }', { b: undefined }, '{"a":1 }'],
  ['{"a":1}', { a: undefined }, '{}'],
  ['{}', { a: '1', b: '2' }, '{"a":1,"b":2}'],
  ['{ }', { a: '1' }, '{"a":1 }'],
  ['{"a":"}, {"}', { b: '1' }, '{"a":"}, {","b":1}'],
  ['{"a":1,"b":2}', { a: undefined, b: undefined, c: '3' }, '{"c":3}'],
  ['{"a":1,"a":2,"b":3}', { a: '9' }, '{"a":9,"b":3}'],
  ['{"a":1,"b":2,"a":3}', { b: '9' }, '{"a":1,"b":9,"a":3}'],
])('the body %s with the edits %j becomes %s', (text, edits, expected) => {
  expect(rewrite(text, edits)).toBe(expected)
})

const spaces = fc.constantFrom('', ' ', '\n', '\t ', '  ')
const name = fc.constantFrom('a', 'b', 'c', 'x y', 'é', 'a"b', '{')
const value = fc.jsonValue({ maxDepth: 2 }).map(json => JSON.stringify(json))

const fieldText = ([key, json, before, after]: readonly [string, string, string, string]): string =>
  `${before}${JSON.stringify(key)}${after}:${before}${json}${after}`

/** JSON objects with white space wherever it is allowed. */
const objects = fc
  .array(fc.tuple(name, value, spaces, spaces), { maxLength: 6 })
  .map(rows => rows.filter(([key], index) => rows.findIndex(([other]) => other === key) === index))
  .map(rows => `{${rows.map(fieldText).join()}}`)

describe('for any request,', () => {
  test('the named fields have the new values, and the others are unchanged', () => {
    fc.assert(
      fc.property(objects, fc.dictionary(name, fc.option(value, { nil: undefined })), (text, edits) => {
        const { ...expected } = JSON.parse(text) as Record<string, unknown>
        for (const [key, json] of Object.entries(edits)) {
          if (json === undefined) delete expected[key]
          else expected[key] = JSON.parse(json)
        }
        expect(JSON.parse(rewrite(text, edits))).toEqual(expected)
      }),
    )
  })

  test('set, default and remove change their fields, and nothing when they are applied again', () => {
    const changes = { set: { 'a': 1, 'o.s': [2] }, default: { 'b': 3, 'o.d': 4 }, remove: ['c', 'o.r'] }
    const fields = fieldsOf(changes)
    const number = fc.integer()
    const inner = fc.record({ s: number, d: number, r: number, k: number }, { requiredKeys: [] })
    const bodies = fc.record(
      { a: fc.integer(), b: fc.integer(), c: fc.integer(), o: fc.oneof(inner, fc.constant(null)), k: fc.string() },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(bodies, json => {
        const { c: _c, ...rest } = json
        const { r: _r, ...innerRest } = (json.o ?? {}) as Record<string, unknown>
        const expected = { b: 3, ...rest, a: 1, o: { d: 4, ...innerRest, s: [2] } }
        const once = overrideFields(Buffer.from(JSON.stringify(json)), fields)!
        expect(JSON.parse(Buffer.from(once.body).toString())).toEqual(expected)
        expect(overrideFields(once.body, fields)).toBeUndefined()
      }),
    )
  })
})
