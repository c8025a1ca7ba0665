// Tests replacing byte ranges.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { applySplices } from './splices.ts'

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

test('ranges are replaced and everything else stays', () => {
  const body = Buffer.from('0123456789')
  expect(text(applySplices(body, []))).toBe('0123456789')
  expect(text(applySplices(body, [{ start: 2, end: 4, text: 'é' }]))).toBe('01é456789')
  expect(
    text(
      applySplices(body, [
        { start: 8, end: 9, text: '' },
        { start: 0, end: 1, text: 'abc' },
      ]),
    ),
  ).toBe('abc12345679')
  expect(text(applySplices(body, [{ start: 10, end: 10, text: '!' }]))).toBe('0123456789!')
  expect(
    text(
      applySplices(body, [
        { start: 3, end: 5, text: 'x' },
        { start: 5, end: 5, text: 'y' },
      ]),
    ),
  ).toBe('012xy56789')
  expect(text(body)).toBe('0123456789')
})

test('ranges that overlap or are outside the body are a programming error', () => {
  const body = Buffer.from('0123456789')
  const overlap = [
    { start: 2, end: 5, text: '' },
    { start: 4, end: 6, text: '' },
  ]
  expect(() => applySplices(body, overlap)).toThrow('assertion failed')
  expect(() => applySplices(body, [{ start: 9, end: 11, text: '' }])).toThrow('assertion failed')
  expect(() => applySplices(body, [{ start: 5, end: 4, text: '' }])).toThrow('assertion failed')
})

test('any splices in any order give the same as replacing from the end', () => {
  const cuts = fc.uniqueArray(fc.nat(40), { maxLength: 8 }).map(positions => [...positions].sort((a, b) => a - b))
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 40, maxLength: 60 }), cuts, fc.string(), (body, positions, replacement) => {
      const pairs = positions.flatMap((start, index) =>
        index % 2 === 0 ? [[start, positions[index + 1] ?? start] as const] : [],
      )
      const ranges = pairs.map(([start, end]) => ({ start, end, text: replacement }))
      let expected = Buffer.from(body)
      for (const { start, end } of [...ranges].reverse()) {
        expected = Buffer.concat([expected.subarray(0, start), Buffer.from(replacement), expected.subarray(end)])
      }
      expect(Buffer.from(applySplices(Buffer.from(body), [...ranges].reverse()))).toEqual(expected)
    }),
  )
})
