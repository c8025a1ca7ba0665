// Tests the caps of a channel, by its operator and by its upstream.

import { describe, expect, test } from 'bun:test'
import type { AttemptResult, HealthParts } from './health.ts'
import { Health } from './health.ts'
import type { ChannelCaps } from './operator-caps.ts'
import { CapShare } from './operator-caps.ts'

const healthOf = (parts: Partial<HealthParts> = {}): Health => new Health({ caps: {}, random: () => 0.5, ...parts })

const success: AttemptResult = { verdict: 'answered', firstContentMs: 100 }

describe('caps of the operator', () => {
  const callUntilCapped = (health: Health, caps: number, nowMs: number): number => {
    let taken = 0
    while (taken <= caps && health.stateFor(10, nowMs) === 'available') {
      health.begin(10, nowMs).end(success, nowMs)
      taken++
    }
    return taken
  }

  test('of requests and of tokens allow a burst of the whole cap and refill evenly', () => {
    const requests = healthOf({ caps: { requestsPerMinute: 60 } })
    expect(callUntilCapped(requests, 100, 0)).toBe(60)
    expect(requests.stateFor(10, 0)).toBe('requests_capped')
    expect(requests.cappedMs(10, 0)).toBeCloseTo(1_000)
    expect(callUntilCapped(requests, 100, 10_000)).toBe(10)
    const tokens = healthOf({ caps: { tokensPerMinute: 600 } })
    expect(callUntilCapped(tokens, 100, 0)).toBe(60)
    expect(tokens.stateFor(10, 0)).toBe('tokens_capped')
    expect(callUntilCapped(tokens, 100, 10_000)).toBe(10)
  })

  test('count the tokens that were used in the end', () => {
    const health = healthOf({ caps: { tokensPerMinute: 1_000 } })
    const use = health.begin(1_000, 0)
    expect(health.stateFor(500, 0)).toBe('tokens_capped')
    use.end({ verdict: 'answered', tokens: 300 }, 0)
    expect([health.stateFor(700, 0), health.stateFor(701, 0)]).toEqual(['available', 'tokens_capped'])
    health.begin(600, 0).end({ verdict: 'broken' }, 0)
    expect(health.stateFor(700, 0)).toBe('available')
  })

  test('may be changed, and a call larger than the cap waits only until the cap is full', () => {
    const health = healthOf({ caps: { tokensPerMinute: 1_000 } })
    expect(health.stateFor(5_000, 0)).toBe('available')
    health.begin(5_000, 0)
    expect(health.cappedMs(5_000, 0)).toBe(300_000)
    health.caps = { tokensPerMinute: 2_000, requestsPerMinute: 5 } satisfies ChannelCaps
    expect(health.stateFor(1, 0)).toBe('tokens_capped')
    health.caps = {}
    expect(health.stateFor(1, 0)).toBe('available')
  })

  test('are divided among the processes that use the channel, and each has at least 1', () => {
    let processes = 4
    const share = (caps: ChannelCaps): Health => healthOf({ caps: new CapShare(caps, () => processes) })
    const requests = share({ requestsPerMinute: 60 })
    expect(callUntilCapped(requests, 100, 0)).toBe(15)
    expect(callUntilCapped(share({ tokensPerMinute: 600 }), 100, 0)).toBe(15)
    const concurrent = share({ concurrency: 3 })
    concurrent.begin(10, 0)
    expect([concurrent.stateFor(10, 0), healthOf().stateFor(10, 0)]).toEqual(['concurrency_capped', 'available'])
    processes = 1
    expect(concurrent.stateFor(10, 0)).toBe('available')
    expect(requests.stateFor(10, 0)).toBe('requests_capped')
    expect(callUntilCapped(requests, 100, 30_000)).toBe(30)
  })
})

describe('the limits that an upstream reports', () => {
  test('block the channel while nothing is left', () => {
    const health = healthOf()
    const limits = [{ resource: 'requests', remaining: 0, resetMs: 20_000 }] as const
    health.begin(1, 0).end({ ...success, upstreamLimits: limits }, 0)
    expect([health.stateFor(1, 0), health.availableInMs(1, 0)]).toEqual(['upstream_limit', 20_000])
    expect(health.stateFor(1, 20_000)).toBe('available')
  })

  test('admit a call as soon as one more is available, if the limit is known', () => {
    const health = healthOf()
    const limits = [{ resource: 'requests', limit: 60, remaining: 0, resetMs: 60_000 }] as const
    health.begin(1, 0).end({ ...success, upstreamLimits: limits }, 0)
    expect(health.availableInMs(1, 0)).toBeCloseTo(1_000)
    expect(health.stateFor(1, 999)).toBe('upstream_limit')
    expect(health.stateFor(1, 1_001)).toBe('available')
  })

  test('include calls that began since the headers', () => {
    const health = healthOf()
    const limits = [{ resource: 'tokens', limit: 1_000, remaining: 300, resetMs: 42_000 }] as const
    health.begin(1, 0).end({ ...success, upstreamLimits: limits }, 0)
    expect([health.stateFor(300, 0), health.stateFor(302, 0)]).toEqual(['available', 'upstream_limit'])
    health.begin(200, 0)
    expect([health.stateFor(100, 0), health.stateFor(102, 0)]).toEqual(['available', 'upstream_limit'])
  })

  test('are ignored while most of a limit is left, or when a limit is invalid', () => {
    const health = healthOf()
    for (const row of [
      { limit: 4_000, remaining: 3_999, resetMs: 1_000 },
      { limit: 0, remaining: 5, resetMs: 1_000 },
      { limit: 10, remaining: 0 },
      { limit: 10, remaining: 0, resetMs: -5 },
      { remaining: 0, resetMs: 0 },
      { limit: 10 },
    ]) {
      health.begin(1, 0).end({ ...success, upstreamLimits: [{ resource: 'requests', ...row }] }, 0)
      expect([row, health.stateFor(1, 0)]).toEqual([row, 'available'])
    }
  })
})
