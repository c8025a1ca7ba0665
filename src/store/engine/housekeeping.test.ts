// The sweep lets go of all: bodies, and answers and kept rows until there are none left that are old.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { idAtMs } from '../../base/ids.ts'
import { Housekeeping } from './housekeeping.ts'
import type { Writer } from './writer.ts'

const nowMs = Date.UTC(2027, 0, 1)

function keepHouse(counts: readonly (number | Error)[]) {
  const seen = { bodies: 0, asked: [] as unknown[], troubles: [] as unknown[] }
  const run = (name: string, input: unknown): Promise<unknown> => {
    const count = counts[seen.asked.length] ?? 0
    seen.asked.push([name, input])
    return count instanceof Error ? Promise.reject(count) : Promise.resolve({ done: 'forgotten', count })
  }
  const house = new Housekeeping({
    writer: { run } as unknown as Writer,
    bodies: { forget: () => void seen.bodies++ },
    deleting: { sweep: async () => {} },
    dateMs: () => nowMs,
    onTrouble: fault => seen.troubles.push(fault),
  })
  return { house, seen }
}

test('bodies are swept, and answers and kept rows as often as there are more', async () => {
  const { house, seen } = keepHouse([32, 5])
  await house.close()
  const before = idAtMs(nowMs - bounds.keptAnswerMsMax)
  expect(seen.bodies).toBe(1)
  expect(seen.asked[0]).toEqual(['forgetAnswers', { before }])
  const again = keepHouse([32, 5, 0, 7])
  await again.house.sweep()
  const names = again.seen.asked.map(asked => (asked as unknown[])[0])
  expect(names).toEqual([...Array(3).fill('forgetAnswers'), ...Array(2).fill('forgetKept'), 'forgetSessions'])
  expect(again.seen.asked.at(-1)).toEqual(['forgetSessions', { nowMs }])
})

test('a ledger that is away is trouble for one sweep only', async () => {
  const { house, seen } = keepHouse([new Error('away')])
  await house.sweep()
  expect(seen.troubles).toEqual([new Error('away')])
  await house.sweep()
  expect([seen.bodies, seen.asked.length]).toEqual([2, 4])
  await house.close()
})
