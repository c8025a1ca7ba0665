// The order of attempts, and when to stop.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Tried, Verdict } from './attempts.ts'
import { judgeStatus, nextChannel } from './attempts.ts'

const channels = ['a', 'b', 'c', 'd'].map(id => ({ id }))
const tried = (...rows: readonly (readonly [string, Verdict])[]): Tried[] =>
  rows.map(([channelId, verdict]) => ({ channelId, verdict }))

describe('the next channel', () => {
  test('is the first that was not tried', () => {
    expect(nextChannel(channels, [], 3)).toEqual({ id: 'a' })
    expect(nextChannel(channels, tried(['a', 'broken']), 3)).toEqual({ id: 'b' })
    expect(nextChannel(channels, tried(['b', 'broken'], ['a', 'too_slow']), 3)).toEqual({ id: 'c' })
  })

  test('is none when enough were tried, or all', () => {
    expect(nextChannel(channels, tried(['a', 'broken'], ['b', 'broken'], ['c', 'broken']), 3)).toBeUndefined()
    expect(nextChannel(channels.slice(0, 1), tried(['a', 'broken']), 3)).toBeUndefined()
    expect(nextChannel([], [], 3)).toBeUndefined()
  })

  test.each(['answered', 'caller_at_fault'] as const)('is none after %s', verdict => {
    expect(nextChannel(channels, tried(['a', 'broken'], ['b', verdict]), 3)).toBeUndefined()
  })

  test.each(['credential_bad', 'rate_limited', 'broken', 'too_slow'] as const)('follows %s', verdict => {
    expect(nextChannel(channels, tried(['a', verdict]), 3)).toEqual({ id: 'b' })
  })

  test('never comes twice, and never beyond the bound', () => {
    const verdicts = fc.array(fc.constantFrom<Verdict>('credential_bad', 'rate_limited', 'broken', 'too_slow'))
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ minLength: 1 })), verdicts, fc.nat(5), (ids, fates, max) => {
        const attempts: Tried[] = []
        for (const verdict of fates) {
          const next = nextChannel(ids.map(id => ({ id })), attempts, max)
          if (next === undefined) break
          expect(attempts.some(({ channelId }) => channelId === next.id)).toBe(false)
          attempts.push({ channelId: next.id, verdict })
        }
        expect(attempts.length).toBe(Math.min(ids.length, max, fates.length))
      }),
    )
  })
})

test.each([
  [[401, 402, 403, 407], 'credential_bad'],
  [[429], 'rate_limited'],
  [[408, 425, 500, 501, 502, 503, 504, 520, 529, 599], 'broken'],
  [[100, 101, 301, 302, 304, 307], 'broken'],
  [[400, 404, 405, 406, 409, 410, 413, 415, 418, 422, 431, 451], 'caller_at_fault'],
] as const)('%p is %s', (statuses, verdict) => {
  for (const status of statuses) expect([status, judgeStatus(status)]).toEqual([status, verdict])
})
