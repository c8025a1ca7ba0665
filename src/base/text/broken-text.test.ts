import { expect, test } from 'bun:test'
import { pathOfBrokenText } from './broken-text.ts'

test.each([
  ['a text', 'x\ud800', []],
  ['the second half', 'x\udc00y', []],
  ['a field', { a: { b: ['fine', 'half \ud83d'] } }, ['a', 'b', 1]],
  ['a name', { a: { 'half \ud83d': 1 } }, ['a']],
] as const)('finds %s', (_, value, path) => {
  expect(pathOfBrokenText(value)).toEqual(path)
})

test('accepts all other values', () => {
  const values = ['', '😀', 'e\u0301', 7, null, true, [], { '😀': ['😀', { a: 'b' }] }]
  expect(values.map(pathOfBrokenText).filter(path => path !== undefined)).toEqual([])
})
