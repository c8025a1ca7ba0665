// Tests a channel that several accounts and models share: which failures block it for whom.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import type { AttemptResult, CallSubject, HealthParts } from './health.ts'
import { Health } from './health.ts'

const healthOf = (parts: Partial<HealthParts> = {}): Health => new Health({ caps: {}, random: () => 0.5, ...parts })
const well: AttemptResult = { verdict: 'answered', firstContentMs: 100 }
const of = (accountId: number, model = 'm'): CallSubject => ({ accountId, model })
const failFor = (health: Health, times: number, { nowMs = 0, ...asking }: CallSubject & { nowMs?: number }): void => {
  for (let time = 0; time < times; time++) health.begin(1, nowMs, asking).end({ verdict: 'broken' }, nowMs)
}

test('a channel that fails for one account and answers others is blocked for that account only', () => {
  const health = healthOf()
  health.begin(1, 0, of(2)).end(well, 0)
  failFor(health, 5, of(1))
  expect([health.blockedBy(1, 0, of(1)), health.blockedBy(1, 0, of(2))]).toEqual(['broken', undefined])
  expect(health.availableInMs(1, 0, of(1))).toBeCloseTo(1_000)
  failFor(health, 1, { ...of(1), nowMs: 1_000 })
  expect(health.availableInMs(1, 1_000, of(1))).toBeCloseTo(2_000)
  failFor(health, 100, { ...of(1), nowMs: 1_500 })
  expect([health.blockedBy(1, 1_500, of(2)), health.breakerOpenMs(1_500)]).toEqual([undefined, undefined])
  health.begin(1, 9_000, of(1)).end(well, 9_000)
  expect(health.blockedBy(1, 9_000, of(1))).toBeUndefined()
})

test('the same when the failures of that account alternate with answers to others', () => {
  const health = healthOf()
  for (let call = 0; call < 60; call++) {
    failFor(health, 2, of(1))
    health.begin(1, 0, of(2 + (call % 3))).end(well, 0)
  }
  expect([health.blockedBy(1, 0, of(1)), health.blockedBy(1, 0, of(2))]).toEqual(['broken', undefined])
})

test('a channel that fails for several accounts, or has answered no other account lately, is blocked for all', () => {
  const several = healthOf()
  several.begin(1, 0, of(3)).end(well, 0)
  for (let time = 0; time < 5; time++) failFor(several, 1, of(1 + (time % 2)))
  expect(several.blockedBy(1, 0, of(3))).toBe('broken')
  const alone = healthOf()
  alone.begin(1, 0, of(2)).end(well, 0)
  failFor(alone, 5, { ...of(1), nowMs: 10_000 })
  expect(alone.blockedBy(1, 10_000, of(2))).toBe('broken')
})

test('more failing accounts than there are account breakers block the channel for all', () => {
  const health = healthOf()
  health.begin(1, 0, of(0)).end(well, 0)
  for (let account = 1; account <= bounds.accountBreakersMax; account++) failFor(health, 5, of(account))
  expect(health.breakerOpenMs(0)).toBeUndefined()
  failFor(health, 5, of(999))
  expect(health.blockedBy(1, 0, of(0))).toBe('broken')
})

test('one account alone does not block a credential that answers others; two accounts do', () => {
  const alarms: string[] = []
  const health = healthOf({ onCredentialRefused: () => void alarms.push('credential_bad') })
  health.begin(1, 0, of(2)).end(well, 0)
  for (let time = 0; time < 50; time++) health.begin(1, 0, of(1)).end({ verdict: 'credential_bad' }, 0)
  expect([health.stateFor(1, 0), ...alarms]).toEqual(['available'])
  health.begin(1, 0, of(2)).end({ verdict: 'credential_bad' }, 0)
  expect([health.stateFor(1, 0), ...alarms]).toEqual(['credential_bad', 'credential_bad'])
})

test('rate limits, upstream limits and the learned limit apply to one model', () => {
  const health = healthOf()
  for (let call = 0; call < 50; call++) health.begin(1, 0, of(2, 'plenty'))
  const turns = Array.from({ length: 10 }, () => health.begin(1, 0, of(1, 'scarce')))
  turns[0]!.end({ verdict: 'rate_limited', retryAfterMs: 60_000 }, 0)
  expect(health.stateFor(1, 0, of(1, 'scarce'))).toBe('rate_limited')
  expect(health.fullBy(1, 0, of(1, 'scarce'))).toBe('busy')
  const told = [{ resource: 'requests', limit: 10, remaining: 0, resetMs: 60_000 }] as const
  health.begin(1, 0, of(1, 'told')).end({ ...well, upstreamLimits: told }, 0)
  expect(health.stateFor(1, 0, of(1, 'told'))).toBe('upstream_limit')
  expect(health.stateFor(1, 0, of(1, 'plenty'))).toBe('available')
  expect(health.snapshot(0)).toMatchObject({ state: 'rate_limited', availableInMs: 60_000, limit: 8 })
})

test('upstream limits block a channel for an hour at most', () => {
  const health = healthOf()
  const told = [{ resource: 'requests', limit: 10, remaining: 0, resetMs: 365 * 86_400_000 }] as const
  health.begin(1, 0).end({ ...well, upstreamLimits: told }, 0)
  expect(health.availableInMs(1, 0)).toBeLessThanOrEqual(bounds.channelPauseMsMax)
})

test('models beyond the bound share one health', () => {
  const health = healthOf()
  for (let name = 0; name < 100_000; name++) health.begin(1, name, of(1, `m${name}`)).end(well, name)
  for (let name = 0; name < 2 * bounds.channelModelsMax; name++) {
    health.begin(1, 0, of(1, `n${name}`)).end({ verdict: 'rate_limited', retryAfterMs: 60_000 }, 0)
  }
  const closed = Array.from({ length: 1_000 }, (_, name) => health.blockedBy(1, 0, of(1, `n${name}`)) !== undefined)
  expect(closed.slice(0, bounds.channelModelsMax)).not.toContain(false)
  expect(health.activeCalls).toBe(0)
})
