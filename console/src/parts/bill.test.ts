import { expect, test } from 'bun:test'
import { lineAmount, multiplierOf, roundedUp, sumOfLines } from './bill.ts'

const lines = [
  { what: 'input', count: 1_000, rate: '2.5' },
  { what: 'output', count: 333, rate: '10' },
]

test('a line is its count times its rate, exactly', () => {
  expect(lineAmount(lines[0]!)).toBe(2_500_000_000_000n)
  expect(sumOfLines(lines)).toBe(5_830_000_000_000n)
})

test('a whole bill is rounded up once', () => {
  expect(roundedUp(sumOfLines([{ what: 'input', count: 1, rate: '0.0001' }]))).toBe(1n)
  expect(roundedUp(5_830_000_000_000n)).toBe(5_830_000n)
})

test('the multiplier of the tier follows from the charge', () => {
  expect(multiplierOf(lines, '0.00583')).toBeUndefined()
  expect(multiplierOf(lines, '0.007579')).toBe(1.3)
  expect(multiplierOf(lines, '0')).toBeUndefined()
})
