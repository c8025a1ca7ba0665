// Ids of several processes never meet, also when their clocks are wrong.

import { expect, test } from 'bun:test'
import { idAtMs, msOfId } from '../../base/ids.ts'
import { buildSlotMinter, SLOT_SPAN } from './slot-ids.ts'

const START_MS = Date.UTC(2026, 10, 15)
const unlimited = (): number => START_MS + 1_000_000

test('ids of a process grow and have its slot, also when the clock goes back or stands still', () => {
  let nowMs = START_MS
  const mint = buildSlotMinter({ slot: 127, fromMs: 0 }, () => nowMs, unlimited)
  const ids = Array.from({ length: 1_000 }, (_, at) => {
    nowMs += at === 500 ? -5_000 : at % 100 === 0 ? 7 : 0
    return mint()
  })
  expect(ids).toEqual(ids.toSorted((one, other) => one - other))
  expect(new Set(ids).size).toBe(1_000)
  expect(ids.every(id => id % SLOT_SPAN === 127)).toBe(true)
  expect(msOfId(ids[0]!)).toBe(START_MS + 7)
  // 64 ids a millisecond; the others carry into the next ones.
  expect(msOfId(ids[99]!)).toBe(START_MS + 8)
})

test('two processes at the same time mint different ids', () => {
  const ids = [1, 2, 3].flatMap(slot => {
    const mint = buildSlotMinter({ slot, fromMs: 0 }, () => START_MS, unlimited)
    return Array.from({ length: 500 }, mint)
  })
  expect(new Set(ids).size).toBe(1_500)
})

test('the next owner of a slot begins behind the ids of the former one, also with a clock that is late', () => {
  const former = buildSlotMinter(
    { slot: 5, fromMs: 0 },
    () => START_MS + 29,
    () => START_MS + 30,
  )
  const last = former()
  const next = buildSlotMinter({ slot: 5, fromMs: START_MS + 30 }, () => START_MS - 60_000, unlimited)
  expect(next()).toBe(idAtMs(START_MS + 30) + 5)
  expect(next()).toBeGreaterThan(last)
})

test('a clock that is ahead of what was granted mints nothing', () => {
  let nowMs = START_MS
  const mint = buildSlotMinter(
    { slot: 5, fromMs: 0 },
    () => nowMs,
    () => START_MS + 30,
  )
  mint()
  nowMs += 31
  expect(mint).toThrow('no ids are granted for this time')
  nowMs -= 10
  expect(msOfId(mint())).toBe(START_MS + 21)
})
