import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  copyLongIntegers,
  findLongInteger,
  keepLongIntegers,
  parseAndFind,
  parseJson,
  parseToWrite,
  writeJson,
} from './long-integers.ts'

/** JSON as text, with integers of any length, and without white space. */
const jsonText = fc.letrec<{ value: string; object: string; list: string }>(tie => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map(String),
    fc.integer().map(String),
    fc.double({ noDefaultInfinity: true, noNaN: true }).map(value => JSON.stringify(value)),
    fc.string().map(value => JSON.stringify(value)),
    fc.constantFrom('true', 'null', '9007199254740991', '-9007199254740993', '9007199254740992'),
    tie('object'),
    tie('list'),
  ),
  object: fc
    .dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', '0', '')), tie('value'))
    .map(fields => Object.entries(fields).map(([name, value]) => `${JSON.stringify(name)}:${value}`))
    .map(fields => `{${fields.join(',')}}`),
  list: fc.array(tie('value')).map(values => `[${values.join(',')}]`),
}))

/** The integers outside of texts. */
const integersOf = (text: string): readonly string[] =>
  text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').match(/(?<![\d.])\d{16,}(?![\d.e])/g) ?? []

describe('long integers', () => {
  test('are rounded for readers, and written with all digits', () => {
    const text = '{"a":[1,12345678901234567890,{"b":-9007199254740993}],"c":123456789012345678901234567890,"d":7}'
    const value = parseJson(text) as { readonly c: number; readonly d: number }
    expect(value).toEqual(JSON.parse(text))
    expect(writeJson(value)).toBe(text)
    expect(writeJson({ ...value, c: 5 })).toBe(text.replace('123456789012345678901234567890', '5'))
    expect(JSON.stringify(parseToWrite(text))).toBe(text)
  })

  test('in any JSON: values are those of JSON.parse, and no digit is lost', () => {
    fc.assert(
      fc.property(fc.oneof(jsonText.object, jsonText.list), text => {
        const value = parseJson(text) as object
        expect(value).toEqual(JSON.parse(text))
        const written = writeJson(value)
        expect(JSON.parse(written)).toEqual(value)
        expect(written).toBe(JSON.stringify(parseToWrite(text)))
        for (const integer of integersOf(text)) expect(written).toContain(integer)
      }),
    )
  })

  test('are found where white space, a sign or nothing is before them', () => {
    for (const text of ['[ 12345678901234567 ]', '{"a":\n-12345678901234567}', '[0,\t12345678901234567]']) {
      expect(writeJson(parseJson(text) as object)).toContain('12345678901234567')
    }
    expect(JSON.stringify([parseToWrite('12345678901234567')])).toBe('[12345678901234567]')
    expect(parseAndFind('{"maximum":9007199254740991,"a":"12345678901234567"}').longIntegers).toBeUndefined()
  })

  test('of a value from another thread are kept there', () => {
    const text = '{"a":{"b":[12345678901234567]}}'
    const { value, longIntegers } = structuredClone(parseAndFind(text))
    expect(writeJson(value as object)).not.toBe(text)
    keepLongIntegers(longIntegers!)
    expect(writeJson(value as object)).toBe(text)
  })

  test('are copied with a list, and forgotten when they are replaced', () => {
    const list = parseJson('[1,12345678901234567]') as number[]
    const joined = [7, 8, 9, ...list]
    copyLongIntegers(list, joined, 3)
    expect(writeJson(joined)).toBe('[7,8,9,1,12345678901234567]')
    joined[4] = 5
    expect(writeJson(joined)).toBe('[7,8,9,1,5]')
    expect(findLongInteger(list, '0', 1)).toBeUndefined()
  })
})
