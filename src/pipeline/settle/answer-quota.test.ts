import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { AnswerQuota } from './answer-quota.ts'

const {
  idempotentAnswersOfAccountBytesMax: own,
  idempotentAnswersBytesMax: all,
  idempotentAnswerBytesMax: one,
} = bounds
const DAY_MS = 86_400_000

function fill(quota: AnswerQuota, accountId: number): number {
  let bytes = 0
  while (quota.take(accountId, one)) bytes += one
  return bytes
}

test('an account has a share, which is free again after a day', () => {
  let nowMs = 5_000
  const quota = new AnswerQuota(() => nowMs)
  expect(fill(quota, 1)).toBe(own)
  expect([quota.take(1, 1), quota.take(2, one)]).toEqual([false, true])
  nowMs += DAY_MS / 2
  expect(fill(quota, 1)).toBe(own / 2)
  nowMs += DAY_MS
  expect(fill(quota, 1)).toBe(own)
})

test('all accounts together have a limit', () => {
  const quota = new AnswerQuota(() => 0)
  let bytes = 0
  for (let accountId = 1; accountId <= (2 * all) / own; accountId++) bytes += fill(quota, accountId)
  expect(bytes).toBe(all)
})
