// Tests a model of which many channels have open breakers: healthy channels answer first, then the next model. Only when
// all healthy channels are full are some of the broken ones used.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chanceOf } from '../../../test/support/chance.ts'
import { Health } from '../health/health.ts'
import type { ChannelChoice, ChoiceInput } from './channel-choice.ts'
import { chooseChannel } from './channel-choice.ts'
import type { ChannelOption, TargetOption } from './target-option.ts'

type TryChoice = Extract<ChannelChoice, { kind: 'try' }>

const channelOption = (id: string): ChannelOption => {
  return { id, priority: 0, weight: 1, health: new Health({ caps: {}, random: () => 0.5 }) }
}

const targetOption = (name: string, channels: readonly ChannelOption[]): TargetOption => {
  return { name, priority: 0, weight: 1, needsTranslation: false, price: 1, channels }
}

const inputOf = (options: readonly TargetOption[]): ChoiceInput => {
  return { targets: options, policy: 'balanced', tried: [], tokens: 1, nowMs: 0, random: chanceOf(5) }
}

const openBreaker = ({ health }: ChannelOption, nowMs: number): void => {
  for (let time = 0; time < 5; time++) health.begin(1, nowMs).end({ verdict: 'broken' }, nowMs)
}

test('open breakers block no more than half of the channels of a model', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 12 }), fc.nat(11), (size, broken) => {
      const channels = Array.from({ length: size }, (_, index) => channelOption(`s${index}`))
      const dead = channels.slice(0, Math.min(broken, size - 1))
      for (const [index, channel] of dead.entries()) openBreaker(channel, index)
      const choose = (): ChannelChoice => chooseChannel({ ...inputOf([targetOption('p/m', channels)]), nowMs: 50 })
      const healthy = channels.slice(dead.length)
      // A healthy channel that has room takes the call.
      for (let time = 0; time < 10; time++) expect(healthy).toContain((choose() as TryChoice).channel)
      for (const { health } of healthy) {
        health.caps = { concurrency: 1 }
        health.begin(1, 40)
      }
      // When the healthy channels are full, the broken channels that recover first count as available.
      const exempt = dead.slice(0, Math.max(0, dead.length - Math.floor(size / 2)))
      for (let time = 0; time < 10; time++) {
        if (exempt.length === 0) expect(choose()).toEqual({ kind: 'wait' })
        else expect(exempt).toContain((choose() as TryChoice).channel)
      }
    }),
  )
})

test.each([1, 2, 5])('a model whose %d channels are all broken is skipped for the next model', size => {
  const dead = Array.from({ length: size }, (_, index) => channelOption(`dead${index}`))
  for (const channel of dead) openBreaker(channel, 0)
  const [first, next] = [
    targetOption('dead/m', dead),
    { ...targetOption('well/m', [channelOption('well')]), priority: 1 },
  ]
  for (let time = 0; time < 50; time++) {
    expect(chooseChannel({ ...inputOf([first, next]), nowMs: 50 })).toMatchObject({
      kind: 'try',
      channel: { id: 'well' },
    })
  }
  // If there is no other model, the broken one is tried all the same.
  expect(chooseChannel({ ...inputOf([first]), nowMs: 50 })).toMatchObject({ kind: 'try', reason: 'nearest' })
})
