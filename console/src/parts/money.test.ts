import { expect, test } from 'bun:test'
import { axisMoney, columnMoney, exactMoney, nanosOf, shortMoney, usdOf } from './money.ts'

test('amounts are exact, and money below a cent is not nothing', () => {
  expect(exactMoney('0.000000001')).toBe('$0.000000001')
  expect(exactMoney('-1234567.5')).toBe('−$1,234,567.50')
  expect(shortMoney('0.00482')).toBe('$0.00482')
  expect(shortMoney('0.0048249')).toBe('$0.00482')
  expect(shortMoney('0.999999')).toBe('$1.00')
  expect(shortMoney('1043.834')).toBe('$1,043.83')
  expect(shortMoney('0')).toBe('$0.00')
  expect([axisMoney(0), axisMoney(0.000025)]).toEqual(['$0', '$0.000025'])
})

test('columns have six decimals, and less than that is said so', () => {
  expect(columnMoney('12.5')).toEqual({ main: '$12.50', rest: '0000' })
  expect(columnMoney('-0.000001')).toEqual({ main: '−$0.00', rest: '0001' })
  expect(columnMoney('0.0000004')).toEqual({ main: '<$0.000001', rest: '' })
  expect(columnMoney('0.9999996')).toEqual({ main: '$1.00', rest: '0000' })
})

test('texts and nano-dollars are the same amount in both directions', () => {
  for (const text of ['0', '0.000000001', '-0.25', '123456789.123456789']) expect(usdOf(nanosOf(text))).toBe(text)
})
