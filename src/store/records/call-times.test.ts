// The times of a call are read as they were written, also those of records of earlier versions.

import { expect, test } from 'bun:test'
import type { RecordedAttempt } from './call-times.ts'
import { attemptColumns, readAttempts, readTimeline, spanText } from './call-times.ts'

test('a timeline is read in the order of time, as it was written', () => {
  const text = [spanText('auth', 0, 0.14), spanText('cost', 1_002.26, 0.04), spanText('forward', 2, 1_000.04)].join()
  expect(text).toBe('auth 0 0.1,cost 1002.3 0,forward 2 1000')
  expect(readTimeline(text)).toEqual([
    { stage: 'auth', atMs: 0, ms: 0.1 },
    { stage: 'forward', atMs: 2, ms: 1_000 },
    { stage: 'cost', atMs: 1_002.3, ms: 0 },
  ])
})

test('a timeline of an earlier version has durations only', () => {
  expect(readTimeline({ Auth: 0.1, RateLimit: 0, deduct: 2.5, fwd: 30, bodies: 1 })).toEqual([
    { stage: 'auth', atMs: null, ms: 0.1 },
    { stage: 'limit', atMs: null, ms: 0 },
    { stage: 'hold', atMs: null, ms: 2.5 },
    { stage: 'forward', atMs: null, ms: 30 },
  ])
  expect(readTimeline(null)).toEqual([])
})

const failed: RecordedAttempt = {
  ...{ channel: 'a#1', model: 'a/m', atMs: 2, ms: 35, firstMs: null, status: 429 },
  verdict: 'rate_limited',
}
const lost: RecordedAttempt = { ...failed, status: null, verdict: 'broken' }
const elsewhere: RecordedAttempt = { ...failed, channel: 'b#1', model: 'b/m' }
const answered: RecordedAttempt = { ...failed, atMs: 40.4, ms: 900.3, firstMs: 300.1, status: 200, verdict: 'answered' }

test('attempts are read as they were written', () => {
  const attempts = [failed, lost, elsewhere, answered]
  // In tenths of a millisecond, like the stages beside them.
  const precise = { ...answered, atMs: 40.44, ms: 900.26, firstMs: 300.149 }
  const stored = [failed, lost, elsewhere, precise].map(attempt => attemptColumns(attempt, 'a/m'))
  expect(stored).toEqual([
    ['a#1', 'rate_limited', 35, 2, 429],
    ['a#1', 'broken', 35, 2, null],
    ['b#1', 'rate_limited', 35, 2, 429, null, 'b/m'],
    ['a#1', 'answered', 900.3, 40.4, 200, 300.1],
  ])
  expect(readAttempts(JSON.parse(JSON.stringify(stored)), 'a/m')).toEqual(attempts)
})

test('attempts of an earlier version have a duration only', () => {
  expect(readAttempts([['a#1', 'answered', 5]], 'a/m')).toEqual([
    { channel: 'a#1', model: null, atMs: null, ms: 5, firstMs: null, status: null, verdict: 'answered' },
  ])
  expect(readAttempts(null, 'a/m')).toEqual([])
})
