// Tests the health of one channel, with a clock and random numbers of the test.

import { describe, expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import type { AttemptVerdict } from '../attempts.ts'
import type { AttemptResult, ChannelUse, HealthParts } from './health.ts'
import { Health } from './health.ts'

/** The number of failures in a row after which the circuit breaker opens. */
const FAILURES_TO_OPEN = 5
/** The number of forbidden answers in a row after which a credential counts as refused. */
const FORBIDDEN_TO_BLOCK = 5

const middle = (): number => 0.5
const healthOf = (parts: Partial<HealthParts> = {}): Health => new Health({ caps: {}, random: middle, ...parts })

function healthWithAlarms(): { readonly health: Health; readonly alarms: readonly string[] } {
  const alarms: string[] = []
  const onCredentialRefused = (): void => void alarms.push('credential_bad')
  const onQuotaSpent = (): void => void alarms.push('quota_spent')
  const onRecovered = (): void => void alarms.push('well_again')
  return { health: healthOf({ onCredentialRefused, onQuotaSpent, onRecovered }), alarms }
}

/** Makes calls one after another, each of which ends at once, with a failure by default. */
function fail(
  health: Health,
  times: number,
  { atMs = 0, ...result }: Partial<AttemptResult> & { atMs?: number } = {},
): void {
  for (let time = 0; time < times; time++) health.begin(1, atMs).end({ verdict: 'broken', ...result }, atMs)
}

const success: AttemptResult = { verdict: 'answered', firstContentMs: 100 }

describe('a breaker', () => {
  test('opens after five failures in a row, not after four', () => {
    const health = healthOf()
    fail(health, FAILURES_TO_OPEN - 1)
    health.begin(1, 0).end(success, 0)
    fail(health, FAILURES_TO_OPEN - 1)
    expect(health.stateFor(1, 0)).toBe('available')
    fail(health, 1)
    expect(health.stateFor(1, 0)).toBe('broken')
  })

  test('opens when half of twenty calls within ten seconds failed', () => {
    const health = healthOf()
    for (let call = 0; call < 19; call++) {
      expect(health.stateFor(1, call * 100)).toBe('available')
      health.begin(1, 0).end(call % 2 === 0 ? { verdict: 'too_slow' } : success, call * 100)
    }
    expect(health.stateFor(1, 1_900)).toBe('available')
    health.begin(1, 1_900).end({ verdict: 'broken' }, 1_900)
    expect(health.stateFor(1, 1_900)).toBe('broken')
  })

  test('forgets failures that are older than ten seconds', () => {
    const health = healthOf()
    for (let call = 0; call < 100; call++) {
      health.begin(1, 0).end(call % 2 === 0 ? { verdict: 'broken' } : success, call * 600)
    }
    expect(health.stateFor(1, 60_000)).toBe('available')
  })

  test('stays open for a second, twice as long after each failed probe, a minute at most', () => {
    const health = healthOf()
    fail(health, FAILURES_TO_OPEN)
    let nowMs = 0
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60, 60]) {
      expect(health.availableInMs(1, nowMs)).toBeCloseTo(seconds * 1_000)
      nowMs += seconds * 1_000
      expect(health.stateFor(1, nowMs - 1)).toBe('broken')
      expect(health.stateFor(1, nowMs)).toBe('available')
      fail(health, 1, { atMs: nowMs })
    }
    nowMs += 60_000
    health.begin(1, nowMs).end(success, nowMs)
    fail(health, FAILURES_TO_OPEN, { atMs: nowMs })
    expect(health.availableInMs(1, nowMs)).toBeCloseTo(1_000)
  })

  test.each([
    [0, 800],
    [1, 1_200],
  ])('closes earlier or later by a fifth at most (random number %p)', (chance, ms) => {
    const health = healthOf({ random: () => chance })
    fail(health, FAILURES_TO_OPEN)
    expect(health.availableInMs(1, 0)).toBeCloseTo(ms)
  })

  test('lets one probe through at a time, and the next one when the probe was abandoned', () => {
    const health = healthOf()
    fail(health, FAILURES_TO_OPEN)
    const probe = health.begin(1, 1_000)
    expect(health.stateFor(1, 1_000)).toBe('broken')
    probe.end({ verdict: 'left' }, 1_500)
    expect(health.stateFor(1, 1_500)).toBe('available')
    const second = health.begin(1, 1_500)
    second.noteAnswer({ firstContentMs: 50 }, 1_600)
    expect(health.stateFor(1, 1_600)).toBe('available')
    second.end({ verdict: 'answered' }, 90_000)
    expect(health.stateFor(1, 90_000)).toBe('available')
  })

  test('counts only calls that began after it opened', () => {
    const health = healthOf()
    const before = [1, 2, 3].map(() => health.begin(1, 0))
    fail(health, FAILURES_TO_OPEN)
    before[0]!.end(success, 500)
    expect(health.stateFor(1, 500)).toBe('broken')
    before[1]!.end({ verdict: 'broken' }, 800)
    // The breaker stays open longer, but not twice as long.
    expect(health.availableInMs(1, 800)).toBeCloseTo(1_000)
    expect(health.stateFor(1, 1_800)).toBe('available')
  })

  test('never recovers earlier because of a further failure', () => {
    const chances = [1, 0]
    const health = healthOf({ random: () => chances.shift() ?? 0 })
    fail(health, FAILURES_TO_OPEN - 1)
    chances.splice(0, 2, 1, 0)
    fail(health, 2)
    expect(health.availableInMs(1, 0)).toBeCloseTo(1_200)
  })

  test.each<AttemptVerdict>(['caller_at_fault', 'not_here', 'rate_limited', 'credential_bad'])(
    'counts the verdict %s as an answer',
    verdict => {
      const health = healthOf()
      fail(health, FAILURES_TO_OPEN - 1)
      health.begin(1, 0).end({ verdict, retryAfterMs: 1 }, 0)
      fail(health, FAILURES_TO_OPEN - 1)
      expect(health.breakerOpenMs(0)).toBeUndefined()
    },
  )
})

describe('a limit of the upstream', () => {
  test('blocks until its time, whatever other calls are refused meanwhile', () => {
    const health = healthOf()
    const uses = [1, 2, 3].map(() => health.begin(1, 0))
    uses[0]!.end({ verdict: 'rate_limited', retryAfterMs: 9_000 }, 0)
    uses[1]!.end({ verdict: 'rate_limited', retryAfterMs: 3_000 }, 0)
    uses[2]!.end({ verdict: 'rate_limited' }, 0)
    expect(health.stateFor(1, 8_999)).toBe('rate_limited')
    expect(health.stateFor(1, 9_000)).toBe('available')
  })

  test('without a stated time blocks for a second, then twice as long, a minute at most', () => {
    const health = healthOf()
    let nowMs = 0
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      // Attempts that are refused together count as one refusal.
      const uses = [1, 2, 3].map(() => health.begin(1, nowMs))
      for (const use of uses) use.end({ verdict: 'rate_limited' }, nowMs)
      expect(health.availableInMs(1, nowMs)).toBeCloseTo(seconds * 1_000)
      nowMs += seconds * 1_000
    }
    health.begin(1, nowMs).end(success, nowMs)
    health.begin(1, nowMs).end({ verdict: 'rate_limited' }, nowMs)
    expect(health.availableInMs(1, nowMs)).toBeCloseTo(1_000)
  })

  test('blocks for an hour at most', () => {
    const health = healthOf()
    health.begin(1, 0).end({ verdict: 'rate_limited', retryAfterMs: 365 * 86_400_000 }, 0)
    expect(health.availableInMs(1, 0)).toBe(bounds.channelPauseMsMax)
  })

  test('of a quota blocks for longer, and calls onQuotaSpent', () => {
    const { health, alarms } = healthWithAlarms()
    health.begin(1, 0).end({ verdict: 'quota_spent' }, 0)
    expect([health.stateFor(1, 0), health.availableInMs(1, 0)]).toEqual(['quota_spent', 60_000])
    health.begin(1, 60_000).end({ verdict: 'quota_spent' }, 60_000)
    expect(health.availableInMs(1, 60_000)).toBe(120_000)
    health.begin(1, 200_000).end(success, 200_000)
    expect(alarms).toEqual(['quota_spent', 'well_again'])
  })
})

test('a refused credential is blocked, reported once, probed every five minutes, and used again when it works', () => {
  const { health, alarms } = healthWithAlarms()
  const before = health.begin(1, 0)
  const refused = [1, 2].map(() => health.begin(1, 0))
  for (const use of refused) use.end({ verdict: 'credential_bad' }, 0)
  before.end(success, 1_000)
  expect(health.stateFor(1, 299_999)).toBe('credential_bad')
  expect(health.stateFor(1, 300_000)).toBe('available')
  const probe = health.begin(1, 300_000)
  expect(health.stateFor(1, 300_000)).toBe('credential_bad')
  probe.end({ verdict: 'credential_bad' }, 300_000)
  expect(health.stateFor(1, 599_999)).toBe('credential_bad')
  expect(alarms).toEqual(['credential_bad'])
  health.begin(1, 600_000).end(success, 600_000)
  expect(health.stateFor(1, 600_000)).toBe('available')
  expect(alarms).toEqual(['credential_bad', 'well_again'])
})

test('a single 403 does not block the channel; several in a row without a success do', () => {
  const { health, alarms } = healthWithAlarms()
  for (let round = 0; round < 10; round++) {
    fail(health, FORBIDDEN_TO_BLOCK - 1, { verdict: 'forbidden' })
    health.begin(1, 0).end(success, 0)
  }
  expect(health.stateFor(1, 0)).toBe('available')
  fail(health, FORBIDDEN_TO_BLOCK, { verdict: 'forbidden' })
  expect([health.stateFor(1, 0), ...alarms]).toEqual(['credential_bad', 'credential_bad'])
})

const begin = (health: Health, times: number, nowMs = 0): ChannelUse[] =>
  Array.from({ length: times }, () => health.begin(1, nowMs))

describe('active calls', () => {
  test('have no limit until the channel is overloaded', () => {
    const health = healthOf()
    begin(health, 10_000)
    expect(health.stateFor(1, 0)).toBe('available')
  })

  test.each<[string, AttemptResult]>([
    ['a 429', { verdict: 'rate_limited', retryAfterMs: 1 }],
    ['a timeout', { verdict: 'too_slow' }],
    ['an overload error', { verdict: 'broken', isOverloaded: true }],
  ])('are limited to a fifth less after %s, once for all calls that were refused together', (_, result) => {
    const health = healthOf()
    const uses = begin(health, 100)
    for (const use of uses.slice(0, 4)) use.end(result, 0)
    expect(health.snapshot(10).limit).toBe(80)
    expect(health.stateFor(1, 10)).toBe('busy')
    for (const use of uses.slice(4, 40)) use.end({ verdict: 'left' }, 0)
    expect(health.stateFor(1, 10)).toBe('available')
  })

  test('have a limit that grows while calls succeed, is at least one, and is removed after a quiet minute', () => {
    const health = healthOf()
    const uses = begin(health, 3)
    for (let nowMs = 0; nowMs < 1_000; nowMs += 10) {
      health.begin(1, nowMs).end({ verdict: 'rate_limited', retryAfterMs: 1 }, nowMs)
    }
    expect(health.snapshot(2_000).limit).toBe(1)
    for (const use of uses) use.end({ verdict: 'left' }, 2_000)
    for (let nowMs = 2_000; nowMs < 3_000; nowMs += 10) health.begin(1, nowMs).end(success, nowMs)
    expect(health.snapshot(3_000).limit).toBeGreaterThan(1)
    expect(health.snapshot(61_000).limit).toBe(null)
  })

  test('get no limit when three of them overload the channel: their number is not the cause', () => {
    const health = healthOf()
    begin(health, 2)
    fail(health, 20, { verdict: 'rate_limited', retryAfterMs: 1 })
    expect(health.snapshot(10).limit).toBe(null)
  })

  test('have a limit that falls when first contents come much later than usual, but not below eight', () => {
    const health = healthOf()
    for (let nowMs = 0; nowMs < 60_000; nowMs += 500) health.begin(1, nowMs).end(success, nowMs)
    let uses = begin(health, 40, 60_000)
    for (let nowMs = 60_000; nowMs < 75_000; nowMs += 500) {
      uses.shift()!.end({ verdict: 'answered', firstContentMs: 60_000 }, nowMs)
      uses.push(health.begin(1, nowMs))
    }
    const { limit } = health.snapshot(75_000)
    expect(limit).toBeLessThan(40)
    expect(limit).toBeGreaterThanOrEqual(8)
    uses = []
  })

  test('are at most as many as the operator allows', () => {
    const health = healthOf({ caps: { concurrency: 3 } })
    const uses = begin(health, 3)
    expect(health.stateFor(1, 0)).toBe('concurrency_capped')
    uses[0]!.end({ verdict: 'left' }, 0)
    uses[0]!.end({ verdict: 'left' }, 0)
    expect([health.stateFor(1, 0), health.activeCalls]).toEqual(['available', 2])
  })

  test('are no longer counted after a time when they are never ended', () => {
    const health = healthOf({ caps: { concurrency: 3 } })
    const unended = begin(health, 3)
    expect(health.stateFor(1, bounds.callMsMax)).toBe('concurrency_capped')
    expect(health.stateFor(1, bounds.channelUseMsMax)).toBe('available')
    unended[0]!.end({ verdict: 'broken' }, bounds.channelUseMsMax)
    expect(health.snapshot(bounds.channelUseMsMax)).toMatchObject({ activeCalls: 0, lost: 3, lastFailure: null })
  })
})

describe('the time to first content', () => {
  test('decays, so that a slow channel looks better the longer it was not tried', () => {
    const health = healthOf()
    expect(health.expectedMs(0)).toBe(0)
    health.begin(1, 0).end({ verdict: 'answered', firstContentMs: 8_000 }, 0)
    expect(health.expectedMs(0)).toBe(8_000)
    expect(health.expectedMs(30_000)).toBeCloseTo(4_000)
    expect(health.expectedMs(300_000)).toBeLessThan(10)
  })

  test('does not decay while a call is waiting for its first content', () => {
    const health = healthOf()
    health.begin(1, 0).end({ verdict: 'answered', firstContentMs: 8_000 }, 0)
    const use = health.begin(1, 300_000)
    expect(health.expectedMs(300_000)).toBe(8_000)
    use.noteAnswer({ firstContentMs: 500 }, 300_500)
    expect(health.expectedMs(300_500)).toBeCloseTo(500, -1)
  })
})

test('upstream limits count when they are received, and not minutes later', () => {
  const health = healthOf()
  const use = health.begin(1, 0)
  use.noteAnswer({ firstContentMs: 10, upstreamLimits: [{ resource: 'requests', remaining: 0, resetMs: 5_000 }] }, 10)
  expect(health.blockedBy(1, 10)).toBe('upstream_limit')
  use.end(success, 300_000)
  expect(health.blockedBy(1, 300_000)).toBeUndefined()
})

describe('a clock that jumps ten minutes', () => {
  const jumpMs = 600_000
  const blockedHealth = (nowMs: number): Health => {
    const health = healthOf({ caps: { requestsPerMinute: 60 } })
    fail(health, FAILURES_TO_OPEN, { atMs: nowMs })
    health.begin(1, nowMs).end({ verdict: 'rate_limited', retryAfterMs: 5_000 }, nowMs)
    health
      .begin(1, nowMs)
      .end({ ...success, upstreamLimits: [{ resource: 'requests', remaining: 0, resetMs: 5_000 }] }, nowMs)
    begin(health, 60, nowMs)
    return health
  }

  test.each([jumpMs, -jumpMs])('by %p ms leaves nothing blocked for longer than its time', ms => {
    const health = blockedHealth(1_000_000)
    const nowMs = 1_000_000 + ms
    expect(health.availableInMs(1, nowMs)).toBeLessThanOrEqual(5_000)
    for (let call = 0; call < 20; call++) health.begin(1, nowMs + call).end(success, nowMs + call)
    expect(health.blockedBy(1, nowMs + 1_000)).toBeUndefined()
    fail(health, FAILURES_TO_OPEN, { atMs: nowMs + 1_000 })
    expect(health.breakerOpenMs(nowMs + 1_000)).toBeLessThanOrEqual(1_200)
  })
})
