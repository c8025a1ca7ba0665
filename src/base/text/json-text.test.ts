import { expect, test } from 'bun:test'
import { jsonText } from './json-text.ts'

test.each<readonly [unknown, string]>([
  ['text', 'text'],
  [7, '7'],
  [null, 'null'],
  [undefined, 'undefined'],
  [{ toString: 0 }, '{"toString":0}'],
  [[{ toString: 0 }], '[{"toString":0}]'],
])('%j is written as text', (value, text) => {
  expect(() => String({ toString: 0 })).toThrow()
  expect(jsonText(value)).toBe(text)
})
