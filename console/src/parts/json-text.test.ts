import { describe, expect, test } from 'bun:test'
import { readJsonObject } from './json-text.ts'

const faults: readonly (readonly [text: string, line: number, column: number])[] = [
  ['', 1, 1],
  ['nonsense', 1, 1],
  ['{', 1, 2],
  ['{"a": 1,}', 1, 9],
  ['{\n  "a": 1\n  "b": 2\n}', 3, 3],
  ['{"a": [1, 2}', 1, 12],
  ['{"a": "b', 1, 7],
  ["{'a': 1}", 1, 2],
  ['{"a": 01}', 1, 8],
  ['{"a": 1} x', 1, 10],
  ['{\n"a" 1}', 2, 5],
  ['{"a": tru}', 1, 7],
  ['{"a": "\t"}', 1, 7],
  ['{"a": "\\x"}', 1, 7],
]

describe('an object as JSON', () => {
  test('is read', () => {
    const value = { a: [1, -2.5e3, 'x"\u00e9\n', true, null, {}, []], fault: 'no fault' }
    expect(readJsonObject(JSON.stringify(value, null, 2))).toEqual({ value })
  })

  test('another value is no object', () => {
    for (const text of ['[1]', '"a"', '1', 'null', ' true ']) expect(readJsonObject(text)).toEqual({ fault: null })
  })

  test.each(faults)('%j is wrong in line %d, column %d', (text, line, column) => {
    expect(() => JSON.parse(text)).toThrow()
    expect(readJsonObject(text)).toEqual({ fault: { line, column } })
  })
})
