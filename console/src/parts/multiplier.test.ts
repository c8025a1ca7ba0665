import { expect, test } from 'bun:test'
import { thousandthsOf } from './multiplier.ts'

test('every whole thousandth is exact', () => {
  for (let thousandths = 0; thousandths <= 100_000; thousandths++)
    expect(
      thousandthsOf(Number(`${Math.floor(thousandths / 1_000)}.${String(thousandths % 1_000).padStart(3, '0')}`)),
    ).toBe(thousandths)
})

test('a part of a thousandth is kept, for the gateway to refuse', () => {
  expect(thousandthsOf(1.0005)).toBe(1_000.5)
})
