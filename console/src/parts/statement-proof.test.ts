import { expect, test } from 'bun:test'
import { proveStatement } from './statement-proof.ts'

const lines = [
  { amount: '-0.000000001', balance: '9.749999999' },
  { amount: '-0.25', balance: '9.75' },
  { amount: '10', balance: '10' },
]

test('a statement whose balances are the sums of its amounts agrees', () => {
  expect(proveStatement(lines, true)).toEqual({ lines: 3, sum: 9_749_999_999n, wrongAt: undefined })
})

test('a balance that is wrong by one nano-dollar is found', () => {
  const wrong = lines.map((line, index) => (index === 1 ? { ...line, balance: '9.750000001' } : line))
  expect(proveStatement(wrong, true).wrongAt).toBe(0)
})

test('the oldest line of a whole statement must begin with nothing', () => {
  const later = [{ amount: '1', balance: '11' }]
  expect(proveStatement(later, true).wrongAt).toBe(0)
  expect(proveStatement(later, false).wrongAt).toBeUndefined()
})
