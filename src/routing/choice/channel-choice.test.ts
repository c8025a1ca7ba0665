// Tests the choice of the next channel: the order, the policies, and that health alone refuses no call.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chanceOf } from '../../../test/support/chance.ts'
import { policyNames as policies } from '../../store/rules/rules.ts'
import type { TriedChannel } from '../attempts.ts'
import type { AttemptResult, CallSubject } from '../health/health.ts'
import { Health } from '../health/health.ts'
import type { ChannelCaps } from '../health/operator-caps.ts'
import type { ChannelChoice, ChoiceInput } from './channel-choice.ts'
import { chooseChannel, explainChannels } from './channel-choice.ts'
import type { ChannelOption, TargetOption } from './target-option.ts'

const channelOption = (id: string, channel: Partial<ChannelOption> & { caps?: ChannelCaps } = {}): ChannelOption => {
  const { caps = {}, ...rest } = channel
  return { id, priority: 0, weight: 1, health: new Health({ caps, random: () => 0.5 }), ...rest }
}

const targetOption = (
  name: string,
  channels: readonly ChannelOption[],
  option: Partial<TargetOption> = {},
): TargetOption => {
  return { name, priority: 0, weight: 1, needsTranslation: false, price: 1, channels, ...option }
}

const choose = (options: readonly TargetOption[], input: Partial<ChoiceInput> = {}): ChannelChoice =>
  chooseChannel({ targets: options, policy: 'balanced', tried: [], tokens: 1, nowMs: 0, random: chanceOf(1), ...input })

const idOf = (choice: ChannelChoice): string => (choice.kind === 'try' ? choice.channel.id : choice.kind)

const subject: CallSubject = { accountId: 0, model: 'p/m' }

function fail(channel: ChannelOption, result: AttemptResult = { verdict: 'broken' }, times = 5): void {
  for (let time = 0; time < times; time++) channel.health.begin(1, 0, subject).end(result, 0)
}

const block = (channel: ChannelOption, retryAfterMs: number, model = 'p/m'): void =>
  channel.health.begin(1, 0, { ...subject, model }).end({ verdict: 'rate_limited', retryAfterMs }, 0)

/** How often each channel was chosen. */
function shares(
  options: readonly TargetOption[],
  times: number,
  input: Partial<ChoiceInput> = {},
): Record<string, number> {
  const counts: Record<string, number> = {}
  const chance = chanceOf(7)
  for (let time = 0; time < times; time++) {
    const id = idOf(choose(options, { random: chance, ...input }))
    counts[id] = (counts[id] ?? 0) + 1
  }
  return counts
}

describe('the order of channels', () => {
  test.each(policies)(
    '%s: is models by priority, then those without translation, then channels by priority',
    policy => {
      const [first, native, near, far] = ['first', 'native', 'near', 'far'].map(id => channelOption(id))
      const options = [
        targetOption('p/later', [first!], { priority: 1 }),
        targetOption('p/translated', [native!], { needsTranslation: true, price: 0, weight: 9 }),
        targetOption('p/native', [
          { ...far!, priority: 2 },
          { ...near!, priority: 1 },
        ]),
      ]
      const order: string[] = []
      const tried: TriedChannel[] = []
      for (
        let choice = choose(options, { policy });
        choice.kind === 'try';
        choice = choose(options, { policy, tried })
      ) {
        order.push(choice.channel.id)
        tried.push({ channelId: choice.channel.id, verdict: 'broken' })
      }
      expect(order).toEqual(['near', 'far', 'native', 'first'])
    },
  )

  test('has a channel or target without weight last', () => {
    const [a, b, c, d] = [
      channelOption('a', { weight: 0 }),
      channelOption('b', { priority: 5 }),
      channelOption('c'),
      channelOption('d'),
    ]
    const later = targetOption('p/n', [c], { priority: 1 })
    const options = [targetOption('p/m', [a, b]), later, targetOption('p/o', [d], { weight: 0 })]
    const order: string[] = []
    for (const channel of [b, c, a, d]) {
      order.push(idOf(choose(options)))
      fail(channel, { verdict: 'quota_spent', retryAfterMs: 9_000 }, 1)
    }
    expect(order).toEqual(['b', 'c', 'a', 'd'])
  })

  test('has a channel that failed with one model again for another model, unless its credential failed', () => {
    const channel = channelOption('only')
    const options = [targetOption('p/big', [channel]), targetOption('p/small', [channel], { priority: 1 })]
    const choiceAfter = (verdict: TriedChannel['verdict']): ChannelChoice =>
      choose(options, { tried: [{ channelId: 'only', model: 'p/big', verdict }] })
    expect(choiceAfter('broken')).toMatchObject({ kind: 'try', target: { name: 'p/small' } })
    expect(choiceAfter('not_here')).toMatchObject({ kind: 'try', target: { name: 'p/small' } })
    expect(choiceAfter('credential_bad').kind).toBe('none')
    expect(choose(options, { tried: [{ channelId: 'only', verdict: 'broken' }] }).kind).toBe('none')
  })

  test('is empty without a channel: the choice is none', () => {
    expect(choose([])).toEqual({ kind: 'none', retryAfterMs: 1_000 })
    expect(choose([targetOption('p/m', [])])).toEqual({ kind: 'none', retryAfterMs: 1_000 })
  })
})

describe('the channel that has the conversation', () => {
  test.each(policies)('%s: comes first, whatever its price, speed, load and priority', policy => {
    const [a, b] = [channelOption('a'), channelOption('b')]
    b.health.begin(1, 0).end({ verdict: 'answered', firstContentMs: 60_000 }, 0)
    for (let call = 0; call < 100; call++) b.health.begin(1, 0)
    const options = [
      targetOption('p/m', [a]),
      targetOption('p/n', [b], { priority: 3, price: 99, needsTranslation: true }),
    ]
    expect(choose(options, { policy, affinityChannel: 'b' })).toMatchObject({
      kind: 'try',
      channel: { id: 'b' },
      reason: 'kept',
    })
    expect(choose(options, { policy, affinityChannel: 'b', affinityModel: 'p/m' })).toMatchObject({
      channel: { id: 'a' },
      reason: 'policy',
    })
  })

  test('is not used when its breaker is open, or it is full, tried, gone, or has no weight', () => {
    const chooseWith = (channel: ChannelOption, input: Partial<ChoiceInput> = {}): string =>
      idOf(choose([targetOption('p/m', [channelOption('a'), channel])], { affinityChannel: channel.id, ...input }))
    const closed = channelOption('b')
    fail(closed)
    const full = channelOption('b', { caps: { concurrency: 1 } })
    full.health.begin(1, 0)
    expect(chooseWith(channelOption('b'))).toBe('b')
    expect(chooseWith(closed)).toBe('a')
    expect(chooseWith(full)).toBe('a')
    expect(chooseWith(channelOption('b', { weight: 0 }))).toBe('a')
    expect(chooseWith(channelOption('b'), { tried: [{ channelId: 'b', verdict: 'broken' }] })).toBe('a')
    expect(idOf(choose([targetOption('p/m', [channelOption('a')])], { affinityChannel: 'gone' }))).toBe('a')
  })
})

describe('the policy', () => {
  test('weighted gives shares by weight, within 3 % over 100,000 draws', () => {
    const weights = [1, 2, 3, 5, 9, 80]
    const options = [
      targetOption(
        'p/m',
        weights.map(weight => channelOption(`w${weight}`, { weight })),
      ),
    ]
    const counts = shares(options, 100_000, { policy: 'weighted' })
    for (const weight of weights) expect(counts[`w${weight}`]! / (weight * 1_000)).toBeWithin(0.9, 1.1)
    for (const weight of weights) expect(Math.abs(counts[`w${weight}`]! / 100_000 - weight / 100)).toBeLessThan(0.03)
  })

  test('weighted gives the share of blocked channels to the others of their model', () => {
    const channels = ['a', 'b', 'c'].map(id => channelOption(id))
    const options = [targetOption('p/m', channels, { weight: 3 }), targetOption('p/n', [channelOption('d')])]
    block(channels[0]!, 60_000)
    const counts = shares(options, 40_000, { policy: 'weighted' })
    expect(counts.a).toBeUndefined()
    for (const id of ['b', 'c']) expect(counts[id]! / 15_000).toBeWithin(0.97, 1.03)
    expect(counts.d! / 10_000).toBeWithin(0.97, 1.03)
  })

  test('weighted gives exact shares among a thousand channels of which nine in ten are blocked', () => {
    const channels = Array.from({ length: 1_000 }, (_, index) =>
      channelOption(`s${index}`, { weight: 1 + (index % 3) }),
    )
    for (const channel of channels.slice(100)) block(channel, 60_000)
    const counts = shares([targetOption('p/m', channels)], 20_000, { policy: 'weighted' })
    const byWeight = [0, 0, 0]
    for (const [id, count] of Object.entries(counts)) byWeight[Number(id.slice(1)) % 3]! += count
    const all = 34 + 33 * 2 + 33 * 3
    for (const [index, expected] of [34, 66, 99].entries()) {
      expect(byWeight[index]! / 20_000 / (expected / all)).toBeWithin(0.95, 1.05)
    }
  })

  test('weighted soon gives a recovered channel its share, although most channels are blocked', () => {
    const channels = Array.from({ length: 1_000 }, (_, index) => channelOption(`s${index}`))
    for (const channel of channels.slice(4)) block(channel, 60_000)
    const options = [targetOption('p/m', channels)]
    expect(Object.keys(shares(options, 100, { policy: 'weighted' })).length).toBe(4)
    for (const { health } of channels.slice(4, 8)) health.begin(1, 1, subject).end({ verdict: 'answered' }, 1)
    const counts = shares(options, 8_000, { policy: 'weighted', nowMs: 200 })
    for (const { id } of channels.slice(0, 8)) expect(counts[id]! / 1_000).toBeWithin(0.9, 1.1)
  })

  test('least busy chooses the channel with the fewest active calls for its weight', () => {
    const channels = [
      channelOption('a', { weight: 1 }),
      channelOption('b', { weight: 4 }),
      channelOption('c', { weight: 1 }),
    ]
    const counts: Record<string, number> = {}
    const chance = chanceOf(3)
    for (let call = 0; call < 60; call++) {
      const choice = choose([targetOption('p/m', channels)], { policy: 'least_busy', random: chance })
      if (choice.kind === 'try') choice.channel.health.begin(1, 0)
      counts[idOf(choice)] = (counts[idOf(choice)] ?? 0) + 1
    }
    for (const [id, expected] of Object.entries({ a: 10, b: 40, c: 10 })) {
      expect(Math.abs(counts[id]! - expected)).toBeLessThanOrEqual(2)
    }
  })

  test('least busy chooses by weight while no call is active', () => {
    const channels = [channelOption('a', { weight: 1 }), channelOption('b', { weight: 3 })]
    const counts = shares([targetOption('p/m', channels)], 4_000, { policy: 'least_busy' })
    expect(counts.a! / 1_000).toBeWithin(0.9, 1.1)
  })

  test('cheapest chooses the cheapest available target, even if others are faster', () => {
    const [dear, cheap, middle] = [channelOption('dear'), channelOption('cheap'), channelOption('middle')]
    cheap.health.begin(1, 0).end({ verdict: 'answered', firstContentMs: 30_000 }, 0)
    const options = [
      targetOption('p/dear', [dear], { price: 9 }),
      targetOption('p/cheap', [cheap], { price: 1 }),
      targetOption('p/middle', [middle], { price: 5 }),
    ]
    expect(shares(options, 100, { policy: 'cheapest' })).toEqual({ cheap: 100 })
    block(cheap, 60_000, 'p/cheap')
    expect(shares(options, 100, { policy: 'cheapest' })).toEqual({ middle: 100 })
  })

  test('fastest chooses the channel whose first content comes first', () => {
    const channels = [900, 300, 600].map(ms => {
      const channel = channelOption(`s${ms}`)
      channel.health.begin(1, 0).end({ verdict: 'answered', firstContentMs: ms }, 0)
      return channel
    })
    expect(shares([targetOption('p/m', channels)], 100, { policy: 'fastest' })).toEqual({ s300: 100 })
  })

  test('balanced gives more to faster, cheaper and less busy channels, and some to every channel', () => {
    const channels = [200, 4_000].map(ms => {
      const channel = channelOption(`s${ms}`)
      channel.health.begin(1, 0).end({ verdict: 'answered', firstContentMs: ms }, 0)
      return channel
    })
    const byTime = shares([targetOption('p/m', channels)], 4_000)
    expect(byTime.s4000! / 4_000).toBeWithin(0.2, 0.3)
    const [dear, cheap] = [channelOption('dear'), channelOption('cheap')]
    const byPrice = shares([targetOption('p/m', [dear], { price: 5 }), targetOption('p/n', [cheap])], 4_000)
    expect(byPrice.dear! / 4_000).toBeWithin(0.2, 0.3)
    const [busy, idle] = [channelOption('busy'), channelOption('idle')]
    busy.health.begin(1, 0)
    expect(shares([targetOption('p/m', [busy, idle])], 4_000).busy! / 4_000).toBeWithin(0.2, 0.3)
  })
})

describe('when no channel is available', () => {
  test('among a thousand blocked channels, the next to recover is found, and then the first available one', () => {
    const channels = Array.from({ length: 1_000 }, (_, index) => channelOption(`s${index}`))
    for (const [index, channel] of channels.entries()) block(channel, 10_000 + ((index * 7) % 1_000))
    const options = [targetOption('p/m', channels)]
    expect(choose(options)).toMatchObject({ channel: { id: 's0' }, reason: 'nearest' })
    channels[500]!.health.begin(1, 10, subject).end({ verdict: 'answered' }, 10)
    for (let nowMs = 11; nowMs < 500; nowMs += 20) {
      expect(choose(options, { nowMs })).toMatchObject({ channel: { id: 's500' }, reason: 'policy' })
    }
  })

  test('the channel that recovers next is tried, but not one that has refused this call', () => {
    const channels = [30_000, 9_000, 60_000].map(ms => channelOption(`s${ms}`))
    for (const channel of channels) block(channel, Number(channel.id.slice(1)))
    const options = [targetOption('p/m', channels)]
    expect(choose(options)).toMatchObject({ kind: 'try', channel: { id: 's9000' }, reason: 'nearest' })
    const tried: TriedChannel[] = [{ channelId: 's9000', verdict: 'rate_limited' }]
    expect(choose(options, { tried })).toEqual({ kind: 'none', retryAfterMs: 30_000 })
  })

  test('the call waits for a channel that is ready in time, if it may wait', () => {
    const channel = channelOption('a')
    block(channel, 700)
    const options = [targetOption('p/m', [channel])]
    expect(choose(options, { waitMs: 700 })).toEqual({ kind: 'wait', forMs: 700 })
    expect(choose(options, { waitMs: 699 })).toMatchObject({ kind: 'try', reason: 'nearest' })
    expect(choose(options)).toMatchObject({ kind: 'try', reason: 'nearest' })
    expect(choose(options, { waitMs: 0 })).toMatchObject({ kind: 'try', reason: 'nearest' })
    expect(choose(options, { nowMs: 700 })).toMatchObject({ kind: 'try', reason: 'policy' })
  })

  test('the call waits when all channels are full; afterwards it may exceed a learned limit but not a configured cap', () => {
    const learned = channelOption('learned')
    for (let call = 0; call < 4; call++) learned.health.begin(1, 0, subject)
    learned.health.begin(1, 0, subject).end({ verdict: 'broken', isOverloaded: true }, 0)
    expect(choose([targetOption('p/m', [learned])])).toEqual({ kind: 'wait' })
    expect(idOf(choose([targetOption('p/m', [learned])], { waitMs: 0 }))).toBe('learned')
    const capped = channelOption('capped', { caps: { concurrency: 1 } })
    capped.health.begin(1, 0)
    expect(choose([targetOption('p/m', [capped])])).toEqual({ kind: 'wait' })
    expect(choose([targetOption('p/m', [capped])], { waitMs: 0 }).kind).toBe('none')
    fail(capped, { verdict: 'broken' })
    expect(choose([targetOption('p/m', [capped])], { waitMs: 0 }).kind).toBe('none')
  })

  test('the call waits for a used-up cap if the wait is short; otherwise the choice is none', () => {
    const slow = channelOption('slow', { caps: { requestsPerMinute: 1 } })
    slow.health.begin(1, 0)
    expect(choose([targetOption('p/m', [slow])])).toEqual({ kind: 'none', retryAfterMs: 60_000 })
    const quick = channelOption('quick', { caps: { requestsPerMinute: 120 } })
    for (let call = 0; call < 120; call++) quick.health.begin(1, 0)
    expect(choose([targetOption('p/m', [quick])], { waitMs: 1_000 })).toEqual({ kind: 'wait', forMs: 500 })
    expect(choose([targetOption('p/m', [slow, quick])], { waitMs: 100 })).toEqual({ kind: 'none', retryAfterMs: 500 })
  })
})

test('a target whose only channel has an open breaker is skipped while another target of the name works', () => {
  const [first, next] = [channelOption('first'), channelOption('next')]
  const options = [targetOption('p/m', [first]), targetOption('q/m', [next], { priority: 1 })]
  fail(first)
  expect(idOf(choose(options))).toBe('next')
  fail(next)
  expect(idOf(choose(options))).toBe('first')
})

const inputOf = (options: readonly TargetOption[]): ChoiceInput => {
  return { targets: options, policy: 'balanced', tried: [], tokens: 1, nowMs: 0, random: chanceOf(5) }
}

test('a half-open channel is probed by one call at a time, however many calls come', () => {
  const channels = ['a', 'b', 'c', 'd'].map(id => channelOption(id))
  fail(channels[0]!)
  const options = [targetOption('p/m', channels)]
  const chance = chanceOf(11)
  const probeReasons: string[] = []
  for (let call = 0; call < 1_000; call++) {
    const choice = choose(options, { policy: 'weighted', nowMs: 5_000, random: chance })
    if (choice.kind !== 'try') throw new Error(choice.kind)
    choice.channel.health.begin(1, 5_000)
    if (choice.channel.id === 'a') probeReasons.push(choice.reason)
  }
  expect(probeReasons).toEqual(['policy'])
})

test('explainChannels agrees with choose', () => {
  const results: readonly AttemptResult[] = [
    { verdict: 'broken' },
    { verdict: 'rate_limited', retryAfterMs: 5_000 },
    { verdict: 'credential_bad' },
    { verdict: 'quota_spent' },
    { verdict: 'answered', firstContentMs: 300 },
  ]
  const channelArb = fc.record({
    priority: fc.nat(2),
    weight: fc.nat(3),
    times: fc.nat(6),
    result: fc.constantFrom(...results),
    activeCalls: fc.nat(2),
    caps: fc.constantFrom<ChannelCaps>({}, { concurrency: 2 }, { requestsPerMinute: 3 }),
  })
  const optionArb = fc.record({
    priority: fc.nat(2),
    weight: fc.nat(2),
    translates: fc.boolean(),
    price: fc.nat(3),
    channels: fc.array(channelArb, { maxLength: 30 }),
  })
  const property = fc.property(
    fc.array(optionArb, { minLength: 1, maxLength: 4 }),
    fc.constantFrom(...policies),
    fc.record({
      seed: fc.nat(),
      waitMs: fc.constantFrom(0, 1_000, undefined),
      triedAt: fc.option(fc.nat(11)),
      nowMs: fc.nat(4_000),
    }),
    (rows, policy, { seed, waitMs, triedAt, nowMs }) => {
      const options = rows.map((row, index) =>
        targetOption(
          `p/${index}`,
          row.channels.map((channel, channelIndex) => buildChannel(`${index}.${channelIndex}`, channel)),
          {
            priority: row.priority,
            weight: row.weight,
            needsTranslation: row.translates,
            price: row.price,
          },
        ),
      )
      const tried: TriedChannel[] = triedAt === null ? [] : [{ channelId: `0.${triedAt}`, verdict: 'broken' }]
      const input: ChoiceInput = { ...inputOf(options), policy, tried, waitMs, nowMs, random: chanceOf(seed) }
      const explained = explainChannels(input)
      expect(explained).toHaveLength(rows.reduce((sum, { channels }) => sum + channels.length, 0))
      const open = explained.filter(({ dropped }) => dropped === null)
      const choice = chooseChannel(input)
      const untried = explained.filter(({ dropped }) => dropped !== 'tried')
      if (choice.kind === 'try') {
        const row = explained.find(({ channel }) => channel === choice.channel.id)!
        expect(row.dropped).not.toBe('tried')
        if (open.length > 0) expect(row.dropped).toBe(null)
      } else {
        expect(open).toEqual([])
        // Only caps may prevent a first attempt.
        const capped = untried.every(({ dropped }) => dropped!.endsWith('_capped') || dropped === 'broken')
        if (waitMs === 0 && tried.length === 0 && !rows.some(hasCaps)) expect(capped && untried.length === 0).toBe(true)
      }
    },
  )
  fc.assert(property, { numRuns: 2_000 })
})

interface ChannelRow {
  readonly priority: number
  readonly weight: number
  readonly times: number
  readonly result: AttemptResult
  readonly activeCalls: number
  readonly caps: ChannelCaps
}

const hasCaps = ({ channels }: { readonly channels: readonly ChannelRow[] }): boolean =>
  channels.some(({ caps }) => Object.keys(caps).length > 0)

function buildChannel(id: string, { times, result, activeCalls, ...rest }: ChannelRow): ChannelOption {
  const channel = channelOption(id, rest)
  fail(channel, result, times)
  for (let call = 0; call < activeCalls; call++) channel.health.begin(1, 0)
  return channel
}
