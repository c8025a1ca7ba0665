// Tests that ids only grow, stay below 2^53, and are read back from their text.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { buildIdMinter, parseTextId, textId } from './ids.ts'

const now = Date.UTC(2026, 5, 1)

test('ids only grow, whatever the clock does', () => {
  const steps = fc.array(fc.integer({ min: -5_000, max: 5_000 }), { minLength: 2, maxLength: 200 })
  fc.assert(
    fc.property(steps, jumps => {
      let ms = now
      const mint = buildIdMinter(() => ms)
      let before = 0
      for (const jump of jumps) {
        ms += jump
        const id = mint()
        expect(id > before && Number.isSafeInteger(id)).toBe(true)
        before = id
      }
    }),
  )
})

test('a millisecond with more ids than its range uses the range of the next', () => {
  let ms = now
  const mint = buildIdMinter(() => ms)
  const ids = Array.from({ length: 20_000 }, mint)
  ms += 1
  ids.push(mint())
  expect(new Set(ids).size).toBe(20_001)
  expect([...ids].sort((a, b) => a - b)).toEqual(ids)
})

test('a restart continues after the last id, also when the clock went back', () => {
  const last = buildIdMinter(() => now)()
  expect(buildIdMinter(() => now - 86_400_000, last)()).toBe(last + 1)
  expect(buildIdMinter(() => now + 1, last)()).toBeGreaterThan(last + 1)
})

test('a clock before the epoch still gives ids', () => {
  const mint = buildIdMinter(() => 0)
  expect([mint(), mint()]).toEqual([1, 2])
})

test('texts of ids have equal length and sort like the numbers', () => {
  const ids = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
  fc.assert(
    fc.property(ids, ids, (a, b) => {
      const [left, right] = [textId('req', a), textId('req', b)]
      expect(left).toMatch(/^req_[0-9a-hjkmnp-tv-z]{11}$/)
      expect(parseTextId('req', left)).toBe(a)
      expect(left < right).toBe(a < b)
    }),
  )
})

test.each([
  ...['', 'req', 'req_', 'req_0000000000', 'req_000000000000'],
  ...['key_00000000001', 'req-00000000001', 'req_0000000000i', 'REQ_00000000001'],
])('%p is not the text of an id', text => {
  expect(parseTextId('req', text)).toBeUndefined()
})

test('a text beyond 2^53 is not the text of an id', () => {
  expect(parseTextId('req', `req_${'z'.repeat(11)}`)).toBeUndefined()
  expect(parseTextId('req', textId('req', Number.MAX_SAFE_INTEGER))).toBe(Number.MAX_SAFE_INTEGER)
})
