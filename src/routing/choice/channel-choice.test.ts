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

const channelOption = (id: string, seat: Partial<ChannelOption> & { caps?: ChannelCaps } = {}): ChannelOption => {
  const { caps = {}, ...rest } = seat
  return { id, priority: 0, weight: 1, health: new Health({ caps, random: () => 0.5 }), ...rest }
}

const targetOption = (
  name: string,
  seats: readonly ChannelOption[],
  option: Partial<TargetOption> = {},
): TargetOption => {
  return { name, priority: 0, weight: 1, needsTranslation: false, price: 1, channels: seats, ...option }
}

const ask = (options: readonly TargetOption[], input: Partial<ChoiceInput> = {}): ChannelChoice =>
  chooseChannel({ targets: options, policy: 'balanced', tried: [], tokens: 1, nowMs: 0, random: chanceOf(1), ...input })

const idOf = (choice: ChannelChoice): string => (choice.kind === 'try' ? choice.channel.id : choice.kind)

const usual: CallSubject = { accountId: 0, model: 'p/m' }

function fail(seat: ChannelOption, result: AttemptResult = { verdict: 'broken' }, times = 5): void {
  for (let time = 0; time < times; time++) seat.health.begin(1, 0, usual).end(result, 0)
}

const block = (seat: ChannelOption, retryAfterMs: number, model = 'p/m'): void =>
  seat.health.begin(1, 0, { ...usual, model }).end({ verdict: 'rate_limited', retryAfterMs }, 0)

/** How often each channel was chosen. */
function shares(
  options: readonly TargetOption[],
  times: number,
  input: Partial<ChoiceInput> = {},
): Record<string, number> {
  const counts: Record<string, number> = {}
  const chance = chanceOf(7)
  for (let time = 0; time < times; time++) {
    const id = idOf(ask(options, { random: chance, ...input }))
    counts[id] = (counts[id] ?? 0) + 1
  }
  return counts
}

describe('the order', () => {
  test.each(policies)('%s: models by priority, then those without translation, then channels by priority', policy => {
    const [first, native, near, far] = ['first', 'native', 'near', 'far'].map(id => channelOption(id))
    const options = [
      targetOption('p/later', [first!], { priority: 1 }),
      targetOption('p/turned', [native!], { needsTranslation: true, price: 0, weight: 9 }),
      targetOption('p/native', [
        { ...far!, priority: 2 },
        { ...near!, priority: 1 },
      ]),
    ]
    const seen: string[] = []
    const tried: TriedChannel[] = []
    for (let choice = ask(options, { policy }); choice.kind === 'try'; choice = ask(options, { policy, tried })) {
      seen.push(choice.channel.id)
      tried.push({ channelId: choice.channel.id, verdict: 'broken' })
    }
    expect(seen).toEqual(['near', 'far', 'native', 'first'])
  })

  test('a channel or target without weight is used only when no other can take the call', () => {
    const [a, b, c, d] = [
      channelOption('a', { weight: 0 }),
      channelOption('b', { priority: 5 }),
      channelOption('c'),
      channelOption('d'),
    ]
    const later = targetOption('p/n', [c], { priority: 1 })
    const options = [targetOption('p/m', [a, b]), later, targetOption('p/o', [d], { weight: 0 })]
    const seen: string[] = []
    for (const seat of [b, c, a, d]) {
      seen.push(idOf(ask(options)))
      fail(seat, { verdict: 'quota_spent', retryAfterMs: 9_000 }, 1)
    }
    expect(seen).toEqual(['b', 'c', 'a', 'd'])
  })

  test('a channel that failed with one model is tried with another, unless its credential failed', () => {
    const seat = channelOption('only')
    const options = [targetOption('p/big', [seat]), targetOption('p/small', [seat], { priority: 1 })]
    const after = (verdict: TriedChannel['verdict']): ChannelChoice =>
      ask(options, { tried: [{ channelId: 'only', model: 'p/big', verdict }] })
    expect(after('broken')).toMatchObject({ kind: 'try', target: { name: 'p/small' } })
    expect(after('not_here')).toMatchObject({ kind: 'try', target: { name: 'p/small' } })
    expect(after('credential_bad').kind).toBe('none')
    expect(ask(options, { tried: [{ channelId: 'only', verdict: 'broken' }] }).kind).toBe('none')
  })

  test('without a channel the choice is none', () => {
    expect(ask([])).toEqual({ kind: 'none', retryAfterMs: 1_000 })
    expect(ask([targetOption('p/m', [])])).toEqual({ kind: 'none', retryAfterMs: 1_000 })
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
    expect(ask(options, { policy, affinityChannel: 'b' })).toMatchObject({
      kind: 'try',
      channel: { id: 'b' },
      reason: 'kept',
    })
    expect(ask(options, { policy, affinityChannel: 'b', affinityModel: 'p/m' })).toMatchObject({
      channel: { id: 'a' },
      reason: 'policy',
    })
  })

  test('is left when it is closed, full, tried, gone, or to be used no more', () => {
    const one = (seat: ChannelOption, input: Partial<ChoiceInput> = {}): string =>
      idOf(ask([targetOption('p/m', [channelOption('a'), seat])], { affinityChannel: seat.id, ...input }))
    const closed = channelOption('b')
    fail(closed)
    const full = channelOption('b', { caps: { concurrency: 1 } })
    full.health.begin(1, 0)
    expect(one(channelOption('b'))).toBe('b')
    expect(one(closed)).toBe('a')
    expect(one(full)).toBe('a')
    expect(one(channelOption('b', { weight: 0 }))).toBe('a')
    expect(one(channelOption('b'), { tried: [{ channelId: 'b', verdict: 'broken' }] })).toBe('a')
    expect(idOf(ask([targetOption('p/m', [channelOption('a')])], { affinityChannel: 'gone' }))).toBe('a')
  })
})

describe('policies', () => {
  test('weighted: shares follow the weights, within 3 % over 100,000 draws', () => {
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

  test('weighted: blocked channels leave their share to the others of their model', () => {
    const seats = ['a', 'b', 'c'].map(id => channelOption(id))
    const options = [targetOption('p/m', seats, { weight: 3 }), targetOption('p/n', [channelOption('d')])]
    block(seats[0]!, 60_000)
    const counts = shares(options, 40_000, { policy: 'weighted' })
    expect(counts.a).toBeUndefined()
    for (const id of ['b', 'c']) expect(counts[id]! / 15_000).toBeWithin(0.97, 1.03)
    expect(counts.d! / 10_000).toBeWithin(0.97, 1.03)
  })

  test('weighted: exact among a thousand channels of which nine in ten are blocked', () => {
    const seats = Array.from({ length: 1_000 }, (_, at) => channelOption(`s${at}`, { weight: 1 + (at % 3) }))
    for (const seat of seats.slice(100)) block(seat, 60_000)
    const counts = shares([targetOption('p/m', seats)], 20_000, { policy: 'weighted' })
    const byWeight = [0, 0, 0]
    for (const [id, count] of Object.entries(counts)) byWeight[Number(id.slice(1)) % 3]! += count
    const all = 34 + 33 * 2 + 33 * 3
    for (const [at, wanted] of [34, 66, 99].entries()) {
      expect(byWeight[at]! / 20_000 / (wanted / all)).toBeWithin(0.95, 1.05)
    }
  })

  test('weighted: a channel that has recovered soon gets its share, although most are blocked', () => {
    const seats = Array.from({ length: 1_000 }, (_, at) => channelOption(`s${at}`))
    for (const seat of seats.slice(4)) block(seat, 60_000)
    const options = [targetOption('p/m', seats)]
    expect(Object.keys(shares(options, 100, { policy: 'weighted' })).length).toBe(4)
    for (const { health } of seats.slice(4, 8)) health.begin(1, 1, usual).end({ verdict: 'answered' }, 1)
    const counts = shares(options, 8_000, { policy: 'weighted', nowMs: 200 })
    for (const { id } of seats.slice(0, 8)) expect(counts[id]! / 1_000).toBeWithin(0.9, 1.1)
  })

  test('least busy: the channel with the fewest active calls for its weight', () => {
    const seats = [
      channelOption('a', { weight: 1 }),
      channelOption('b', { weight: 4 }),
      channelOption('c', { weight: 1 }),
    ]
    const counts: Record<string, number> = {}
    const chance = chanceOf(3)
    for (let call = 0; call < 60; call++) {
      const choice = ask([targetOption('p/m', seats)], { policy: 'least_busy', random: chance })
      if (choice.kind === 'try') choice.channel.health.begin(1, 0)
      counts[idOf(choice)] = (counts[idOf(choice)] ?? 0) + 1
    }
    for (const [id, wanted] of Object.entries({ a: 10, b: 40, c: 10 })) {
      expect(Math.abs(counts[id]! - wanted)).toBeLessThanOrEqual(2)
    }
  })

  test('least busy: by weight while no call is active', () => {
    const seats = [channelOption('a', { weight: 1 }), channelOption('b', { weight: 3 })]
    const counts = shares([targetOption('p/m', seats)], 4_000, { policy: 'least_busy' })
    expect(counts.a! / 1_000).toBeWithin(0.9, 1.1)
  })

  test('cheapest: the cheapest available target, even if others are faster', () => {
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

  test('fastest: the channel whose first content comes first', () => {
    const seats = [900, 300, 600].map(ms => {
      const seat = channelOption(`s${ms}`)
      seat.health.begin(1, 0).end({ verdict: 'answered', firstContentMs: ms }, 0)
      return seat
    })
    expect(shares([targetOption('p/m', seats)], 100, { policy: 'fastest' })).toEqual({ s300: 100 })
  })

  test('balanced: faster, cheaper and less busy channels get more, and every channel gets some', () => {
    const seats = [200, 4_000].map(ms => {
      const seat = channelOption(`s${ms}`)
      seat.health.begin(1, 0).end({ verdict: 'answered', firstContentMs: ms }, 0)
      return seat
    })
    const byTime = shares([targetOption('p/m', seats)], 4_000)
    expect(byTime.s4000! / 4_000).toBeWithin(0.2, 0.3)
    const [dear, cheap] = [channelOption('dear'), channelOption('cheap')]
    const byPrice = shares([targetOption('p/m', [dear], { price: 5 }), targetOption('p/n', [cheap])], 4_000)
    expect(byPrice.dear! / 4_000).toBeWithin(0.2, 0.3)
    const [busy, idle] = [channelOption('busy'), channelOption('idle')]
    busy.health.begin(1, 0)
    expect(shares([targetOption('p/m', [busy, idle])], 4_000).busy! / 4_000).toBeWithin(0.2, 0.3)
  })
})

describe('when none is open', () => {
  test('among a thousand blocked channels, the next to recover is found, and then the first available one', () => {
    const seats = Array.from({ length: 1_000 }, (_, at) => channelOption(`s${at}`))
    for (const [at, seat] of seats.entries()) block(seat, 10_000 + ((at * 7) % 1_000))
    const options = [targetOption('p/m', seats)]
    expect(ask(options)).toMatchObject({ channel: { id: 's0' }, reason: 'nearest' })
    seats[500]!.health.begin(1, 10, usual).end({ verdict: 'answered' }, 10)
    for (let nowMs = 11; nowMs < 500; nowMs += 20) {
      expect(ask(options, { nowMs })).toMatchObject({ channel: { id: 's500' }, reason: 'policy' })
    }
  })

  test('the channel that recovers next is tried, but not one that has refused this call', () => {
    const seats = [30_000, 9_000, 60_000].map(ms => channelOption(`s${ms}`))
    for (const seat of seats) block(seat, Number(seat.id.slice(1)))
    const options = [targetOption('p/m', seats)]
    expect(ask(options)).toMatchObject({ kind: 'try', channel: { id: 's9000' }, reason: 'nearest' })
    const tried: TriedChannel[] = [{ channelId: 's9000', verdict: 'rate_limited' }]
    expect(ask(options, { tried })).toEqual({ kind: 'none', retryAfterMs: 30_000 })
  })

  test('the call waits for a channel that is ready in time, if it may wait', () => {
    const seat = channelOption('a')
    block(seat, 700)
    const options = [targetOption('p/m', [seat])]
    expect(ask(options, { waitMs: 700 })).toEqual({ kind: 'wait', forMs: 700 })
    expect(ask(options, { waitMs: 699 })).toMatchObject({ kind: 'try', reason: 'nearest' })
    expect(ask(options)).toMatchObject({ kind: 'try', reason: 'nearest' })
    expect(ask(options, { waitMs: 0 })).toMatchObject({ kind: 'try', reason: 'nearest' })
    expect(ask(options, { nowMs: 700 })).toMatchObject({ kind: 'try', reason: 'policy' })
  })

  test('the call waits when all channels are full; afterwards it may exceed a learned limit but not a configured cap', () => {
    const learned = channelOption('learned')
    for (let call = 0; call < 4; call++) learned.health.begin(1, 0, usual)
    learned.health.begin(1, 0, usual).end({ verdict: 'broken', isOverloaded: true }, 0)
    expect(ask([targetOption('p/m', [learned])])).toEqual({ kind: 'wait' })
    expect(idOf(ask([targetOption('p/m', [learned])], { waitMs: 0 }))).toBe('learned')
    const capped = channelOption('capped', { caps: { concurrency: 1 } })
    capped.health.begin(1, 0)
    expect(ask([targetOption('p/m', [capped])])).toEqual({ kind: 'wait' })
    expect(ask([targetOption('p/m', [capped])], { waitMs: 0 }).kind).toBe('none')
    fail(capped, { verdict: 'broken' })
    expect(ask([targetOption('p/m', [capped])], { waitMs: 0 }).kind).toBe('none')
  })

  test('the call waits for a used-up cap if the wait is short; otherwise the choice is none', () => {
    const slow = channelOption('slow', { caps: { requestsPerMinute: 1 } })
    slow.health.begin(1, 0)
    expect(ask([targetOption('p/m', [slow])])).toEqual({ kind: 'none', retryAfterMs: 60_000 })
    const quick = channelOption('quick', { caps: { requestsPerMinute: 120 } })
    for (let call = 0; call < 120; call++) quick.health.begin(1, 0)
    expect(ask([targetOption('p/m', [quick])], { waitMs: 1_000 })).toEqual({ kind: 'wait', forMs: 500 })
    expect(ask([targetOption('p/m', [slow, quick])], { waitMs: 100 })).toEqual({ kind: 'none', retryAfterMs: 500 })
  })
})

test('a target whose only channel has an open breaker is skipped while another target of the name works', () => {
  const [first, next] = [channelOption('first'), channelOption('next')]
  const options = [targetOption('p/m', [first]), targetOption('q/m', [next], { priority: 1 })]
  fail(first)
  expect(idOf(ask(options))).toBe('next')
  fail(next)
  expect(idOf(ask(options))).toBe('first')
})

const asked = (options: readonly TargetOption[]): ChoiceInput => {
  return { targets: options, policy: 'balanced', tried: [], tokens: 1, nowMs: 0, random: chanceOf(5) }
}

test('a half-open channel is probed by one call at a time, however many calls come', () => {
  const seats = ['a', 'b', 'c', 'd'].map(id => channelOption(id))
  fail(seats[0]!)
  const options = [targetOption('p/m', seats)]
  const chance = chanceOf(11)
  const probing: string[] = []
  for (let call = 0; call < 1_000; call++) {
    const choice = ask(options, { policy: 'weighted', nowMs: 5_000, random: chance })
    if (choice.kind !== 'try') throw new Error(choice.kind)
    choice.channel.health.begin(1, 5_000)
    if (choice.channel.id === 'a') probing.push(choice.reason)
  }
  expect(probing).toEqual(['policy'])
})

test('explainChannels agrees with choose', () => {
  const fates: readonly AttemptResult[] = [
    { verdict: 'broken' },
    { verdict: 'rate_limited', retryAfterMs: 5_000 },
    { verdict: 'credential_bad' },
    { verdict: 'quota_spent' },
    { verdict: 'answered', firstContentMs: 300 },
  ]
  const seatArb = fc.record({
    priority: fc.nat(2),
    weight: fc.nat(3),
    times: fc.nat(6),
    result: fc.constantFrom(...fates),
    underWay: fc.nat(2),
    caps: fc.constantFrom<ChannelCaps>({}, { concurrency: 2 }, { requestsPerMinute: 3 }),
  })
  const optionArb = fc.record({
    priority: fc.nat(2),
    weight: fc.nat(2),
    translates: fc.boolean(),
    price: fc.nat(3),
    seats: fc.array(seatArb, { maxLength: 30 }),
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
      const options = rows.map((row, at) =>
        targetOption(
          `p/${at}`,
          row.seats.map((seat, place) => damaged(`${at}.${place}`, seat)),
          {
            priority: row.priority,
            weight: row.weight,
            needsTranslation: row.translates,
            price: row.price,
          },
        ),
      )
      const tried: TriedChannel[] = triedAt === null ? [] : [{ channelId: `0.${triedAt}`, verdict: 'broken' }]
      const choosing: ChoiceInput = { ...asked(options), policy, tried, waitMs, nowMs, random: chanceOf(seed) }
      const explained = explainChannels(choosing)
      expect(explained).toHaveLength(rows.reduce((sum, { seats }) => sum + seats.length, 0))
      const open = explained.filter(({ dropped }) => dropped === null)
      const choice = chooseChannel(choosing)
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

interface SeatRow {
  readonly priority: number
  readonly weight: number
  readonly times: number
  readonly result: AttemptResult
  readonly underWay: number
  readonly caps: ChannelCaps
}

const hasCaps = ({ seats }: { readonly seats: readonly SeatRow[] }): boolean =>
  seats.some(({ caps }) => Object.keys(caps).length > 0)

function damaged(id: string, { times, result, underWay, ...seat }: SeatRow): ChannelOption {
  const made = channelOption(id, seat)
  fail(made, result, times)
  for (let call = 0; call < underWay; call++) made.health.begin(1, 0)
  return made
}
