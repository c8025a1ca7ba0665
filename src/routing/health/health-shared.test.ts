// Tests a channel that several accounts and models share: which failures block it for which account or model.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import type { AttemptResult, CallSubject, HealthParts } from './health.ts'
import { Health } from './health.ts'

const healthOf = (parts: Partial<HealthParts> = {}): Health => new Health({ caps: {}, random: () => 0.5, ...parts })
const success: AttemptResult = { verdict: 'answered', firstContentMs: 100 }
const subject = (accountId: number, model = 'm'): CallSubject => ({ accountId, model })
const failFor = (
  health: Health,
  times: number,
  { nowMs = 0, ...callSubject }: CallSubject & { nowMs?: number },
): void => {
  for (let time = 0; time < times; time++) health.begin(1, nowMs, callSubject).end({ verdict: 'broken' }, nowMs)
}

test('a channel that fails for one account and answers others is blocked for that account only', () => {
  const health = healthOf()
  health.begin(1, 0, subject(2)).end(success, 0)
  failFor(health, 5, subject(1))
  expect([health.blockedBy(1, 0, subject(1)), health.blockedBy(1, 0, subject(2))]).toEqual(['broken', undefined])
  expect(health.availableInMs(1, 0, subject(1))).toBeCloseTo(1_000)
  failFor(health, 1, { ...subject(1), nowMs: 1_000 })
  expect(health.availableInMs(1, 1_000, subject(1))).toBeCloseTo(2_000)
  failFor(health, 100, { ...subject(1), nowMs: 1_500 })
  expect([health.blockedBy(1, 1_500, subject(2)), health.breakerOpenMs(1_500)]).toEqual([undefined, undefined])
  health.begin(1, 9_000, subject(1)).end(success, 9_000)
  expect(health.blockedBy(1, 9_000, subject(1))).toBeUndefined()
})

test('a channel whose failures for one account alternate with answers to others is blocked for that account only', () => {
  const health = healthOf()
  for (let call = 0; call < 60; call++) {
    failFor(health, 2, subject(1))
    health.begin(1, 0, subject(2 + (call % 3))).end(success, 0)
  }
  expect([health.blockedBy(1, 0, subject(1)), health.blockedBy(1, 0, subject(2))]).toEqual(['broken', undefined])
})

test('a channel that fails for several accounts, or has answered no other account lately, is blocked for all', () => {
  const sharedHealth = healthOf()
  sharedHealth.begin(1, 0, subject(3)).end(success, 0)
  for (let time = 0; time < 5; time++) failFor(sharedHealth, 1, subject(1 + (time % 2)))
  expect(sharedHealth.blockedBy(1, 0, subject(3))).toBe('broken')
  const alone = healthOf()
  alone.begin(1, 0, subject(2)).end(success, 0)
  failFor(alone, 5, { ...subject(1), nowMs: 10_000 })
  expect(alone.blockedBy(1, 10_000, subject(2))).toBe('broken')
})

test('more failing accounts than there are account breakers block the channel for all', () => {
  const health = healthOf()
  health.begin(1, 0, subject(0)).end(success, 0)
  for (let account = 1; account <= bounds.accountBreakersMax; account++) failFor(health, 5, subject(account))
  expect(health.breakerOpenMs(0)).toBeUndefined()
  failFor(health, 5, subject(999))
  expect(health.blockedBy(1, 0, subject(0))).toBe('broken')
})

test('one account alone does not block a credential that answers others; two accounts do', () => {
  const alarms: string[] = []
  const health = healthOf({ onCredentialRefused: () => void alarms.push('credential_bad') })
  health.begin(1, 0, subject(2)).end(success, 0)
  for (let time = 0; time < 50; time++) health.begin(1, 0, subject(1)).end({ verdict: 'credential_bad' }, 0)
  expect([health.stateFor(1, 0), ...alarms]).toEqual(['available'])
  health.begin(1, 0, subject(2)).end({ verdict: 'credential_bad' }, 0)
  expect([health.stateFor(1, 0), ...alarms]).toEqual(['credential_bad', 'credential_bad'])
})

test('rate limits, upstream limits and the learned limit apply to one model', () => {
  const health = healthOf()
  for (let call = 0; call < 50; call++) health.begin(1, 0, subject(2, 'plenty'))
  const uses = Array.from({ length: 10 }, () => health.begin(1, 0, subject(1, 'scarce')))
  uses[0]!.end({ verdict: 'rate_limited', retryAfterMs: 60_000 }, 0)
  expect(health.stateFor(1, 0, subject(1, 'scarce'))).toBe('rate_limited')
  expect(health.fullBy(1, 0, subject(1, 'scarce'))).toBe('busy')
  const limits = [{ resource: 'requests', limit: 10, remaining: 0, resetMs: 60_000 }] as const
  health.begin(1, 0, subject(1, 'told')).end({ ...success, upstreamLimits: limits }, 0)
  expect(health.stateFor(1, 0, subject(1, 'told'))).toBe('upstream_limit')
  expect(health.stateFor(1, 0, subject(1, 'plenty'))).toBe('available')
  expect(health.snapshot(0)).toMatchObject({ state: 'rate_limited', availableInMs: 60_000, limit: 8 })
})

test('upstream limits block a channel for an hour at most', () => {
  const health = healthOf()
  const limits = [{ resource: 'requests', limit: 10, remaining: 0, resetMs: 365 * 86_400_000 }] as const
  health.begin(1, 0).end({ ...success, upstreamLimits: limits }, 0)
  expect(health.availableInMs(1, 0)).toBeLessThanOrEqual(bounds.channelPauseMsMax)
})

test('models beyond the bound share one health', () => {
  const health = healthOf()
  for (let name = 0; name < 100_000; name++) health.begin(1, name, subject(1, `m${name}`)).end(success, name)
  for (let name = 0; name < 2 * bounds.channelModelsMax; name++) {
    health.begin(1, 0, subject(1, `n${name}`)).end({ verdict: 'rate_limited', retryAfterMs: 60_000 }, 0)
  }
  const closed = Array.from(
    { length: 1_000 },
    (_, name) => health.blockedBy(1, 0, subject(1, `n${name}`)) !== undefined,
  )
  expect(closed.slice(0, bounds.channelModelsMax)).not.toContain(false)
  expect(health.activeCalls).toBe(0)
})
