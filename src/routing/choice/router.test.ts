// Tests the guarantees of routing over many calls: health, choice, affinity and retry budget together, with a clock and
// random numbers of the test. A failing run prints its seed.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chanceOf } from '../../../test/support/chance.ts'
import { bounds } from '../../base/bounds.ts'
import { policyNames } from '../../store/rules/rules.ts'
import type { AttemptVerdict, TriedChannel } from '../attempts.ts'
import type { AttemptResult, ChannelUse } from '../health/health.ts'
import { Health } from '../health/health.ts'
import type { RetryLease } from '../retry-budget.ts'
import { RetryBudget } from '../retry-budget.ts'
import { Affinity } from './affinity.ts'
import type { ChoiceInput } from './channel-choice.ts'
import { chooseChannel } from './channel-choice.ts'
import type { ChannelOption, TargetOption } from './target-option.ts'

const channelsWith = (weights: readonly number[], chance: () => number): ChannelOption[] =>
  weights.map((weight, index) => ({
    id: `s${index}`,
    priority: 0,
    weight,
    health: new Health({ caps: {}, random: chance }),
  }))

const optionOf = (channels: readonly ChannelOption[]): TargetOption => ({
  name: 'p/m',
  priority: 0,
  weight: 1,
  needsTranslation: false,
  price: 1,
  channels,
})

const seeds = fc.integer({ min: 0, max: 2 ** 31 })

/** A queue of actions in the order of their time. */
class Schedule {
  readonly #due: { readonly atMs: number; run(): void }[] = []

  add(atMs: number, run: () => void): void {
    const after = this.#due.findIndex(other => other.atMs > atMs)
    this.#due.splice(after < 0 ? this.#due.length : after, 0, { atMs, run })
  }

  runUntil(nowMs: number): void {
    while (this.#due.length > 0 && this.#due[0]!.atMs <= nowMs) this.#due.shift()!.run()
  }
}

describe.each(policyNames)('%s', policy => {
  test('never starves a healthy channel, even if it was slow or broken before', () => {
    const arb = fc.record({
      seed: seeds,
      weights: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 12 }),
      everyMs: fc.integer({ min: 50, max: 400 }),
    })
    const property = fc.property(arb, ({ seed, weights, everyMs }) => {
      const chance = chanceOf(seed)
      const channels = channelsWith(weights, chance)
      const usualMs = channels.map(() => 100 + chance() * 1_900)
      const lastMs = channels.map(() => 0)
      const schedule = new Schedule()
      const [slow, broken] = [0, channels.length - 1]
      const options = [optionOf(channels)]
      const endMs = 15 * 60_000
      for (let nowMs = 0; nowMs < endMs; nowMs += everyMs) {
        schedule.runUntil(nowMs)
        const choice = chooseChannel({
          targets: options,
          policy,
          tried: [],
          tokens: 1,
          waitMs: 0,
          nowMs,
          random: chance,
        })
        if (choice.kind !== 'try') throw new Error(choice.kind)
        const index = channels.indexOf(choice.channel)
        const use = choice.channel.health.begin(1, nowMs)
        const isEarly = nowMs < 30_000
        if (isEarly && index === broken) {
          use.end({ verdict: 'broken' }, nowMs)
          continue
        }
        const firstMs = isEarly && index === slow ? 30_000 : usualMs[index]!
        schedule.add(nowMs + firstMs, () => use.end({ verdict: 'answered', firstContentMs: firstMs }, nowMs + firstMs))
        lastMs[index] = nowMs
      }
      for (const ms of lastMs) expect(endMs - ms).toBeLessThan(5 * 60_000)
    })
    fc.assert(property, { numRuns: 8 })
  })

  test('keeps 99 % of conversations on one channel while it is healthy, whatever the others do', () => {
    const property = fc.property(seeds, seed => {
      const chance = chanceOf(seed)
      const channels = channelsWith(
        Array.from({ length: 20 }, (_, index) => 1 + (index % 3)),
        chance,
      )
      const isSteady = (id: string): boolean => Number(id.slice(1)) % 2 === 0
      const options = [optionOf(channels)]
      const affinity = new Affinity()
      const channelOf = new Map<string, string>()
      let [stayed, all] = [0, 0]
      for (let step = 0; step < 20_000; step++) {
        const nowMs = step * 100
        const name = `conversation-${Math.floor(chance() * 500)}`
        const known = affinity.get(name, nowMs)
        const affinityInput = { affinityChannel: known?.channelId, affinityModel: known?.model }
        const choice = chooseChannel({
          targets: options,
          policy,
          tried: [],
          ...affinityInput,
          tokens: 1,
          nowMs,
          random: chance,
        })
        if (choice.kind !== 'try') throw new Error(choice.kind)
        const { id, health } = choice.channel
        const isAnswered = isSteady(id) || chance() < 0.6
        const firstMs = 50 + chance() * 5_000
        health
          .begin(1, nowMs)
          .end(isAnswered ? { verdict: 'answered', firstContentMs: firstMs } : { verdict: 'broken' }, nowMs)
        if (!isAnswered) continue
        const channel = channelOf.get(name)
        if (known !== undefined && channel !== undefined && isSteady(channel)) {
          all++
          if (channel === id) stayed++
        }
        channelOf.set(name, id)
        affinity.set(name, { channelId: id, model: choice.target.name }, { ttlMs: undefined, nowMs })
      }
      expect(all).toBeGreaterThan(5_000)
      expect(stayed / all).toBeGreaterThanOrEqual(0.99)
    })
    fc.assert(property, { numRuns: 4 })
  })
})

test('a dead provider gets at most 1.2 times its load', () => {
  const arb = fc.record({
    seed: seeds,
    channels: fc.integer({ min: 1, max: 8 }),
    perSecond: fc.integer({ min: 20, max: 200 }),
    firstMs: fc.constantFrom(1, 50, 5_000, 120_000),
    againMs: fc.constantFrom(1, 50, 5_000),
    verdict: fc.constantFrom<AttemptVerdict>('broken', 'too_slow', 'rate_limited', 'credential_bad'),
  })
  const property = fc.property(arb, ({ seed, channels, perSecond, firstMs, againMs, verdict }) => {
    const chance = chanceOf(seed)
    const options = [
      optionOf(
        channelsWith(
          Array.from({ length: channels }, () => 1),
          chance,
        ),
      ),
    ]
    const budget = new RetryBudget()
    const schedule = new Schedule()
    let [calls, attempts] = [0, 0]
    const attempt = (tried: readonly TriedChannel[], lease: RetryLease, nowMs: number): void => {
      const mayTry = tried.length === 0 || (tried.length < bounds.attemptsPerCallMax && lease.mayRetry(nowMs))
      const input: ChoiceInput = {
        targets: options,
        policy: 'balanced',
        tried,
        tokens: 1,
        waitMs: 0,
        nowMs,
        random: chance,
      }
      const choice = mayTry ? chooseChannel(input) : undefined
      // No call is refused without an attempt.
      if (tried.length === 0) expect(choice?.kind).toBe('try')
      if (choice?.kind !== 'try') return lease.end()
      attempts++
      const use = choice.channel.health.begin(1, nowMs)
      const endMs = nowMs + (tried.length === 0 ? firstMs : againMs)
      schedule.add(endMs, () => {
        use.end({ verdict }, endMs)
        attempt([...tried, { channelId: choice.channel.id, verdict }], lease, endMs)
      })
    }
    for (let nowMs = 0; nowMs < 60_000; nowMs += 1_000 / perSecond) {
      schedule.runUntil(nowMs)
      calls++
      attempt([], budget.begin('m', nowMs), nowMs)
    }
    expect(attempts / calls).toBeLessThanOrEqual(1.2)
  })
  fc.assert(property, { numRuns: 20 })
})

test('calls are answered while any channel is healthy: one among dead ones, or one of the next model', () => {
  const arb = fc.record({
    seed: seeds,
    policy: fc.constantFrom(...policyNames),
    dead: fc.integer({ min: 1, max: 9 }),
    healthy: fc.integer({ min: 0, max: 2 }),
    failMs: fc.constantFrom(1, 50, 1_000),
  })
  const property = fc.property(arb, ({ seed, policy, dead, healthy, failMs }) => {
    const chance = chanceOf(seed)
    const channels = channelsWith(
      Array.from({ length: dead + healthy }, () => 1),
      chance,
    )
    const next = { id: 'next', priority: 0, weight: 1, health: new Health({ caps: {}, random: chance }) }
    const options = [optionOf(channels), { ...optionOf([next]), name: 'q/m', priority: 1 }]
    const deadIds = new Set(channels.slice(0, dead).map(({ id }) => id))
    const budget = new RetryBudget()
    const schedule = new Schedule()
    let [calls, answered] = [0, 0]
    const attempt = (
      tried: readonly TriedChannel[],
      call: { lease: RetryLease; counts: boolean },
      nowMs: number,
    ): void => {
      const { lease, counts } = call
      const mayTry = tried.length === 0 || (tried.length < bounds.attemptsPerCallMax && lease.mayRetry(nowMs))
      const choice = mayTry
        ? chooseChannel({ targets: options, policy, tried, tokens: 1, waitMs: 0, nowMs, random: chance })
        : undefined
      if (choice?.kind !== 'try') return lease.end()
      const { id, health } = choice.channel
      const use = health.begin(1, nowMs)
      const endMs = nowMs + (deadIds.has(id) ? failMs : 500)
      const verdict = deadIds.has(id) ? 'broken' : 'answered'
      schedule.add(endMs, () => {
        use.end({ verdict, firstContentMs: endMs - nowMs }, endMs)
        if (verdict === 'broken') return attempt([...tried, { channelId: id, verdict }], call, endMs)
        if (counts) answered++
        lease.end()
      })
    }
    for (let nowMs = 0; nowMs < 40_000; nowMs += 10) {
      schedule.runUntil(nowMs)
      const counts = nowMs >= 10_000 // the breakers need some failures first
      if (counts) calls++
      attempt([], { lease: budget.begin('m', nowMs), counts }, nowMs)
    }
    schedule.runUntil(Infinity)
    expect(answered / calls).toBeGreaterThanOrEqual(0.98)
  })
  fc.assert(property, { numRuns: 30 })
})

test('over 100,000 random endings no attempt leaks, and none is counted twice', () => {
  const chance = chanceOf(42)
  const health = new Health({ caps: { concurrency: 30, tokensPerMinute: 1_000_000 }, random: chance })
  const verdicts: readonly AttemptResult['verdict'][] = [
    ...(['answered', 'answered', 'left', 'broken', 'too_slow', 'rate_limited', 'caller_at_fault'] as const),
    ...(['credential_bad', 'forbidden', 'quota_spent', 'not_here'] as const),
  ]
  const open: ChannelUse[] = []
  let nowMs = 0
  for (let call = 0; call < 100_000; call++) {
    nowMs += chance() * 50
    open.push(health.begin(Math.floor(chance() * 100), nowMs))
    while (open.length > 25) {
      const [use] = open.splice(Math.floor(chance() * open.length), 1)
      if (chance() < 0.001) continue // this attempt is never ended
      if (chance() < 0.5) use!.noteAnswer({ firstContentMs: chance() * 1_000 }, nowMs)
      const verdict = verdicts[Math.floor(chance() * verdicts.length)]!
      for (let end = chance() < 0.1 ? 2 : 1; end > 0; end--) use!.end({ verdict, tokens: 50 }, nowMs)
    }
  }
  for (const use of open) use.end({ verdict: 'answered' }, nowMs)
  nowMs += bounds.channelUseMsMax
  health.begin(1, nowMs).end({ verdict: 'answered' }, nowMs)
  expect(health.activeCalls).toBe(0)
  expect(health.snapshot(nowMs).lost).toBeGreaterThan(0)
  expect(health.fullBy(1_000, nowMs)).toBeUndefined()
})
