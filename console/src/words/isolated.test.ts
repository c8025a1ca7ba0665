// What isolates a text of people from the words around it.

import { expect, test } from 'bun:test'
import { isolated } from './isolated.ts'

test('a text that turns nothing is unchanged', () => {
  for (const text of ['', 'shop', 'Zoë', '河流', '👩‍👩‍👧', '=1+1', '<b>']) expect(isolated(text)).toBe(text)
})

test('a text that is written from right to left, or turns others, is isolated', () => {
  for (const text of ['שלום', 'متجر', 'ab\u202Ecd', '\u2067x', '\u200Fx', '\uFDFD']) {
    expect(isolated(text)).toBe(`\u2068${text}\u2069`)
  }
})

test('a text cannot end its isolation', () => {
  expect(isolated('x\u2069\u202Ey')).toBe('\u2068x\u202Ey\u2069')
  expect(isolated('\u2066x\u2069\u2069y')).toBe('\u2068\u2066x\u2069y\u2069')
})
