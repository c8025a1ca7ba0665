// The hashes of the closed days of a statement, computed from the lines that are shown.

import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { DailyHash, StatementLine } from '../api/types.ts'
import { proveDays, textOfDay } from './statement-days.ts'

const account = 'acc_1'
const lineOf = (at: number, day: string): StatementLine => ({
  made: `${day}T12:00:00.000Z`,
  kind: 'charge',
  amount: '-0.1',
  balance: `${100 - at}`,
  with: 'acc_2',
  ref: `req_${at}`,
  reference: null,
  author: null,
})

/** Oldest first: two lines on the first day, one on the second, three on the third; then one that is open. */
const made = ['2026-03-30', '2026-03-30', '2026-03-31', '2026-04-02', '2026-04-02', '2026-04-02', '2026-04-03']
const oldestFirst = made.map((day, at) => lineOf(at, day))
const lines = oldestFirst.toReversed()

const days: DailyHash[] = []
let previousHash = '0'.repeat(64)
for (const [day, from, transfers] of [
  ['2026-03-30', 0, 2],
  ['2026-03-31', 2, 1],
  ['2026-04-02', 3, 3],
] as const) {
  const text = textOfDay(account, day, oldestFirst.slice(from, from + transfers))
  const hash = createHash('sha256').update(Buffer.from(previousHash, 'hex')).update(text).digest('hex')
  const { kind: lastKind, ref: lastRef, balance } = oldestFirst[from + transfers - 1]!
  days.unshift({ day, transfers, lastKind, lastRef, balance, previousHash, hash })
  previousHash = hash
}
const all = ['2026-04-02', '2026-03-31', '2026-03-30']

test('all days that are shown in full agree', async () => {
  expect(await proveDays({ account, lines, isWhole: true, days })).toEqual({ agree: all, differ: [] })
})

test('a day that is not loaded in full is not judged', async () => {
  const shown = { account, lines: lines.slice(0, 6), isWhole: false, days }
  expect(await proveDays(shown)).toEqual({ agree: all.slice(0, 2), differ: [] })
  expect(await proveDays({ ...shown, lines: lines.slice(0, 3) })).toEqual({ agree: [], differ: [] })
  const ranged = { ...shown, lines: lines.slice(2) }
  expect(await proveDays(ranged)).toEqual({ agree: all.slice(1), differ: [] })
})

const without = (at: number): StatementLine[] => lines.filter((_, place) => place !== at)
const damages: readonly (readonly [what: string, lines: readonly StatementLine[], day: string])[] = [
  ['changed', lines.map((line, at) => (at === 2 ? { ...line, amount: '-0.2' } : line)), '2026-04-02'],
  ['removed', without(2), '2026-04-02'],
  ['removed at the end of a day', without(4), '2026-03-31'],
  ['inserted', [...lines.slice(0, 2), lineOf(77, '2026-04-02'), ...lines.slice(2)], '2026-04-02'],
  ['inserted between two days', [...lines.slice(0, 4), lineOf(77, '2026-04-01'), ...lines.slice(4)], '2026-04-02'],
]
test.each(damages)('a line that was %s is found', async (_, changed, day) => {
  expect((await proveDays({ account, lines: changed, isWhole: true, days })).differ).toContain(day)
})
