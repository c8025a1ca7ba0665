// The sweep deletes expired bodies, and it deletes expired answers and vault rows until none are left.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { idAtMs } from '../../base/ids.ts'
import { Housekeeping } from './housekeeping.ts'
import type { Writer } from './writer.ts'

const nowMs = Date.UTC(2027, 0, 1)

function startHousekeeping(counts: readonly (number | Error)[], isOurs = true) {
  const seen = { bodies: 0, days: 0, operations: [] as unknown[], errors: [] as unknown[], isOurs }
  const run = (name: string, input: unknown): Promise<unknown> => {
    const count = counts[seen.operations.length] ?? 0
    seen.operations.push([name, input])
    return count instanceof Error ? Promise.reject(count) : Promise.resolve({ done: 'forgotten', count })
  }
  const housekeeping = new Housekeeping({
    writer: { run } as unknown as Writer,
    bodies: { deleteExpired: () => void seen.bodies++ },
    recordDeleter: { sweep: async () => {} },
    dayCloser: { sweep: async () => void seen.days++, close() {} },
    jobs: { isOurs: async () => seen.isOurs },
    dateMs: () => nowMs,
    onError: fault => seen.errors.push(fault),
  })
  return { housekeeping, seen }
}

test('bodies are swept once, and answers and vault rows until none are left', async () => {
  const { housekeeping, seen } = startHousekeeping([32, 5])
  await housekeeping.sweep()
  expect(seen.days).toBe(0)
  await housekeeping.closeDays()
  await housekeeping.close()
  const before = idAtMs(nowMs - bounds.idempotentAnswerMsMax)
  expect([seen.bodies, seen.days]).toEqual([1, 1])
  expect(seen.operations[0]).toEqual(['forgetAnswers', { before }])
  const second = startHousekeeping([32, 5, 0, 7])
  await second.housekeeping.sweep()
  const names = second.seen.operations.map(operation => (operation as unknown[])[0])
  expect(names).toEqual([
    ...Array(3).fill('forgetAnswers'),
    ...Array(2).fill('forgetKept'),
    'forgetSessions',
    'forgetServiceTokens',
  ])
  expect(second.seen.operations.at(-1)).toEqual(['forgetServiceTokens', { nowMs }])
})

test('an unavailable ledger fails one sweep only', async () => {
  const { housekeeping, seen } = startHousekeeping([new Error('away')])
  await housekeeping.sweep()
  expect(seen.errors).toEqual([new Error('away')])
  await housekeeping.sweep()
  expect([seen.bodies, seen.operations.length]).toEqual([2, 5])
  await housekeeping.close()
})

test('a process that does not have the job deletes nothing, and asks again before each sweep', async () => {
  const { housekeeping, seen } = startHousekeeping([], false)
  await housekeeping.sweep()
  await housekeeping.sweep()
  await housekeeping.closeDays()
  expect([seen.bodies, seen.days, seen.operations]).toEqual([0, 0, []])
  seen.isOurs = true
  await housekeeping.sweep()
  await housekeeping.closeDays()
  expect([seen.bodies, seen.days, seen.operations.length]).toEqual([1, 1, 4])
  await housekeeping.close()
})
