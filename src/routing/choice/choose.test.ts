// Which channel is tried next: the order, the policies, and that no call is turned away for what is believed.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chanceOf } from '../../../test/support/chance.ts'
import { policyNames as policies } from '../../store/rules/rules.ts'
import type { Tried } from '../attempts.ts'
import type { Asking, Fate } from '../health/health.ts'
import { Health } from '../health/health.ts'
import type { Caps } from '../health/operator-caps.ts'
import type { Choice, Choosing } from './choose.ts'
import { choose, explainSeats } from './choose.ts'
import type { Option, Seat } from './option.ts'

const seatOf = (id: string, seat: Partial<Seat> & { caps?: Caps } = {}): Seat => {
  const { caps = {}, ...rest } = seat
  return { id, priority: 0, weight: 1, health: new Health({ caps, chance: () => 0.5 }), ...rest }
}

const optionOf = (name: string, seats: readonly Seat[], option: Partial<Option> = {}): Option => {
  return { name, priority: 0, weight: 1, translates: false, price: 1, seats, ...option }
}

const ask = (options: readonly Option[], asking: Partial<Choosing> = {}): Choice =>
  choose({ options, policy: 'balanced', tried: [], tokens: 1, nowMs: 0, chance: chanceOf(1), ...asking })

const idOf = (choice: Choice): string => (choice.kind === 'try' ? choice.seat.id : choice.kind)

const usual: Asking = { accountId: 0, model: 'p/m' }

function fail(seat: Seat, fate: Fate = { verdict: 'broken' }, times = 5): void {
  for (let time = 0; time < times; time++) seat.health.begin(1, 0, usual).end(fate, 0)
}

const shut = (seat: Seat, retryAfterMs: number, model = 'p/m'): void =>
  seat.health.begin(1, 0, { ...usual, model }).end({ verdict: 'rate_limited', retryAfterMs }, 0)

/** How often each was chosen. */
function shares(options: readonly Option[], times: number, asking: Partial<Choosing> = {}): Record<string, number> {
  const counts: Record<string, number> = {}
  const chance = chanceOf(7)
  for (let time = 0; time < times; time++) {
    const id = idOf(ask(options, { chance, ...asking }))
    counts[id] = (counts[id] ?? 0) + 1
  }
  return counts
}

describe('the order', () => {
  test.each(policies)('%s: models by priority, then those without translation, then channels by priority', policy => {
    const [first, native, near, far] = ['first', 'native', 'near', 'far'].map(id => seatOf(id))
    const options = [
      optionOf('p/later', [first!], { priority: 1 }),
      optionOf('p/turned', [native!], { translates: true, price: 0, weight: 9 }),
      optionOf('p/native', [
        { ...far!, priority: 2 },
        { ...near!, priority: 1 },
      ]),
    ]
    const seen: string[] = []
    const tried: Tried[] = []
    for (let choice = ask(options, { policy }); choice.kind === 'try'; choice = ask(options, { policy, tried })) {
      seen.push(choice.seat.id)
      tried.push({ channelId: choice.seat.id, verdict: 'broken' })
    }
    expect(seen).toEqual(['near', 'far', 'native', 'first'])
  })

  test('what has no weight comes only when no other can', () => {
    const [a, b, c, d] = [seatOf('a', { weight: 0 }), seatOf('b', { priority: 5 }), seatOf('c'), seatOf('d')]
    const later = optionOf('p/n', [c], { priority: 1 })
    const options = [optionOf('p/m', [a, b]), later, optionOf('p/o', [d], { weight: 0 })]
    const seen: string[] = []
    for (const seat of [b, c, a, d]) {
      seen.push(idOf(ask(options)))
      fail(seat, { verdict: 'quota_spent', retryAfterMs: 9_000 }, 1)
    }
    expect(seen).toEqual(['b', 'c', 'a', 'd'])
  })

  test('a channel that failed with one model is tried with another, unless its credential did', () => {
    const seat = seatOf('only')
    const options = [optionOf('p/big', [seat]), optionOf('p/small', [seat], { priority: 1 })]
    const after = (verdict: Tried['verdict']): Choice =>
      ask(options, { tried: [{ channelId: 'only', model: 'p/big', verdict }] })
    expect(after('broken')).toMatchObject({ kind: 'try', option: { name: 'p/small' } })
    expect(after('not_here')).toMatchObject({ kind: 'try', option: { name: 'p/small' } })
    expect(after('credential_bad').kind).toBe('none')
    expect(ask(options, { tried: [{ channelId: 'only', verdict: 'broken' }] }).kind).toBe('none')
  })

  test('without anything to try there is none', () => {
    expect(ask([])).toEqual({ kind: 'none', retryAfterMs: 1_000 })
    expect(ask([optionOf('p/m', [])])).toEqual({ kind: 'none', retryAfterMs: 1_000 })
  })
})

describe('the channel that has the conversation', () => {
  test.each(policies)('%s: comes first, whatever its price, speed, load and priority', policy => {
    const [a, b] = [seatOf('a'), seatOf('b')]
    b.health.begin(1, 0).end({ verdict: 'answered', firstMs: 60_000 }, 0)
    for (let call = 0; call < 100; call++) b.health.begin(1, 0)
    const options = [optionOf('p/m', [a]), optionOf('p/n', [b], { priority: 3, price: 99, translates: true })]
    expect(ask(options, { policy, keptOn: 'b' })).toMatchObject({ kind: 'try', seat: { id: 'b' }, why: 'kept' })
    expect(ask(options, { policy, keptOn: 'b', keptModel: 'p/m' })).toMatchObject({ seat: { id: 'a' }, why: 'policy' })
  })

  test('is left when it is closed, full, tried, gone, or to be used no more', () => {
    const one = (seat: Seat, asking: Partial<Choosing> = {}): string =>
      idOf(ask([optionOf('p/m', [seatOf('a'), seat])], { keptOn: seat.id, ...asking }))
    const closed = seatOf('b')
    fail(closed)
    const full = seatOf('b', { caps: { concurrency: 1 } })
    full.health.begin(1, 0)
    expect(one(seatOf('b'))).toBe('b')
    expect(one(closed)).toBe('a')
    expect(one(full)).toBe('a')
    expect(one(seatOf('b', { weight: 0 }))).toBe('a')
    expect(one(seatOf('b'), { tried: [{ channelId: 'b', verdict: 'broken' }] })).toBe('a')
    expect(idOf(ask([optionOf('p/m', [seatOf('a')])], { keptOn: 'gone' }))).toBe('a')
  })
})

describe('policies', () => {
  test('weighted: as the weights say, within 3 % over 100,000 draws', () => {
    const weights = [1, 2, 3, 5, 9, 80]
    const options = [
      optionOf(
        'p/m',
        weights.map(weight => seatOf(`w${weight}`, { weight })),
      ),
    ]
    const counts = shares(options, 100_000, { policy: 'weighted' })
    for (const weight of weights) expect(counts[`w${weight}`]! / (weight * 1_000)).toBeWithin(0.9, 1.1)
    for (const weight of weights) expect(Math.abs(counts[`w${weight}`]! / 100_000 - weight / 100)).toBeLessThan(0.03)
  })

  test('weighted: closed channels leave their part to the others of their model', () => {
    const seats = ['a', 'b', 'c'].map(id => seatOf(id))
    const options = [optionOf('p/m', seats, { weight: 3 }), optionOf('p/n', [seatOf('d')])]
    shut(seats[0]!, 60_000)
    const counts = shares(options, 40_000, { policy: 'weighted' })
    expect(counts.a).toBeUndefined()
    for (const id of ['b', 'c']) expect(counts[id]! / 15_000).toBeWithin(0.97, 1.03)
    expect(counts.d! / 10_000).toBeWithin(0.97, 1.03)
  })

  test('weighted: exact among a thousand of which nine in ten are closed', () => {
    const seats = Array.from({ length: 1_000 }, (_, at) => seatOf(`s${at}`, { weight: 1 + (at % 3) }))
    for (const seat of seats.slice(100)) shut(seat, 60_000)
    const counts = shares([optionOf('p/m', seats)], 20_000, { policy: 'weighted' })
    const byWeight = [0, 0, 0]
    for (const [id, count] of Object.entries(counts)) byWeight[Number(id.slice(1)) % 3]! += count
    const all = 34 + 33 * 2 + 33 * 3
    for (const [at, wanted] of [34, 66, 99].entries()) {
      expect(byWeight[at]! / 20_000 / (wanted / all)).toBeWithin(0.95, 1.05)
    }
  })

  test('weighted: one that is open again soon has its share, though most are closed', () => {
    const seats = Array.from({ length: 1_000 }, (_, at) => seatOf(`s${at}`))
    for (const seat of seats.slice(4)) shut(seat, 60_000)
    const options = [optionOf('p/m', seats)]
    expect(Object.keys(shares(options, 100, { policy: 'weighted' })).length).toBe(4)
    for (const { health } of seats.slice(4, 8)) health.begin(1, 1, usual).end({ verdict: 'answered' }, 1)
    const counts = shares(options, 8_000, { policy: 'weighted', nowMs: 200 })
    for (const { id } of seats.slice(0, 8)) expect(counts[id]! / 1_000).toBeWithin(0.9, 1.1)
  })

  test('least busy: the one with the fewest for its weight', () => {
    const seats = [seatOf('a', { weight: 1 }), seatOf('b', { weight: 4 }), seatOf('c', { weight: 1 })]
    const counts: Record<string, number> = {}
    const chance = chanceOf(3)
    for (let call = 0; call < 60; call++) {
      const choice = ask([optionOf('p/m', seats)], { policy: 'least_busy', chance })
      if (choice.kind === 'try') choice.seat.health.begin(1, 0)
      counts[idOf(choice)] = (counts[idOf(choice)] ?? 0) + 1
    }
    for (const [id, wanted] of Object.entries({ a: 10, b: 40, c: 10 })) {
      expect(Math.abs(counts[id]! - wanted)).toBeLessThanOrEqual(2)
    }
  })

  test('least busy: by weight while nothing is under way', () => {
    const seats = [seatOf('a', { weight: 1 }), seatOf('b', { weight: 3 })]
    const counts = shares([optionOf('p/m', seats)], 4_000, { policy: 'least_busy' })
    expect(counts.a! / 1_000).toBeWithin(0.9, 1.1)
  })

  test('cheapest: the cheapest that can, whoever is faster', () => {
    const [dear, cheap, middle] = [seatOf('dear'), seatOf('cheap'), seatOf('middle')]
    cheap.health.begin(1, 0).end({ verdict: 'answered', firstMs: 30_000 }, 0)
    const options = [
      optionOf('p/dear', [dear], { price: 9 }),
      optionOf('p/cheap', [cheap], { price: 1 }),
      optionOf('p/middle', [middle], { price: 5 }),
    ]
    expect(shares(options, 100, { policy: 'cheapest' })).toEqual({ cheap: 100 })
    shut(cheap, 60_000, 'p/cheap')
    expect(shares(options, 100, { policy: 'cheapest' })).toEqual({ middle: 100 })
  })

  test('fastest: the one whose first content comes first', () => {
    const seats = [900, 300, 600].map(ms => {
      const seat = seatOf(`s${ms}`)
      seat.health.begin(1, 0).end({ verdict: 'answered', firstMs: ms }, 0)
      return seat
    })
    expect(shares([optionOf('p/m', seats)], 100, { policy: 'fastest' })).toEqual({ s300: 100 })
  })

  test('balanced: faster, cheaper and less busy ones get more, and none gets nothing', () => {
    const seats = [200, 4_000].map(ms => {
      const seat = seatOf(`s${ms}`)
      seat.health.begin(1, 0).end({ verdict: 'answered', firstMs: ms }, 0)
      return seat
    })
    const byTime = shares([optionOf('p/m', seats)], 4_000)
    expect(byTime.s4000! / 4_000).toBeWithin(0.2, 0.3)
    const [dear, cheap] = [seatOf('dear'), seatOf('cheap')]
    const byPrice = shares([optionOf('p/m', [dear], { price: 5 }), optionOf('p/n', [cheap])], 4_000)
    expect(byPrice.dear! / 4_000).toBeWithin(0.2, 0.3)
    const [busy, idle] = [seatOf('busy'), seatOf('idle')]
    busy.health.begin(1, 0)
    expect(shares([optionOf('p/m', [busy, idle])], 4_000).busy! / 4_000).toBeWithin(0.2, 0.3)
  })
})

describe('when none is open', () => {
  test('of a thousand the next to recover is found, and the first that is open again', () => {
    const seats = Array.from({ length: 1_000 }, (_, at) => seatOf(`s${at}`))
    for (const [at, seat] of seats.entries()) shut(seat, 10_000 + ((at * 7) % 1_000))
    const options = [optionOf('p/m', seats)]
    expect(ask(options)).toMatchObject({ seat: { id: 's0' }, why: 'nearest' })
    seats[500]!.health.begin(1, 10, usual).end({ verdict: 'answered' }, 10)
    for (let nowMs = 11; nowMs < 500; nowMs += 20) {
      expect(ask(options, { nowMs })).toMatchObject({ seat: { id: 's500' }, why: 'policy' })
    }
  })

  test('the next to recover is tried, and not one that refused this call', () => {
    const seats = [30_000, 9_000, 60_000].map(ms => seatOf(`s${ms}`))
    for (const seat of seats) shut(seat, Number(seat.id.slice(1)))
    const options = [optionOf('p/m', seats)]
    expect(ask(options)).toMatchObject({ kind: 'try', seat: { id: 's9000' }, why: 'nearest' })
    const tried: Tried[] = [{ channelId: 's9000', verdict: 'rate_limited' }]
    expect(ask(options, { tried })).toEqual({ kind: 'none', retryAfterMs: 30_000 })
  })

  test('one that is ready in time is waited for, where the call may wait', () => {
    const seat = seatOf('a')
    shut(seat, 700)
    const options = [optionOf('p/m', [seat])]
    expect(ask(options, { waitMs: 700 })).toEqual({ kind: 'wait', forMs: 700 })
    expect(ask(options, { waitMs: 699 })).toMatchObject({ kind: 'try', why: 'nearest' })
    expect(ask(options)).toMatchObject({ kind: 'try', why: 'nearest' })
    expect(ask(options, { waitMs: 0 })).toMatchObject({ kind: 'try', why: 'nearest' })
    expect(ask(options, { nowMs: 700 })).toMatchObject({ kind: 'try', why: 'policy' })
  })

  test('all at their bound is a wait; after that what was learned gives way and what was laid down does not', () => {
    const learned = seatOf('learned')
    for (let call = 0; call < 4; call++) learned.health.begin(1, 0, usual)
    learned.health.begin(1, 0, usual).end({ verdict: 'broken', overloaded: true }, 0)
    expect(ask([optionOf('p/m', [learned])])).toEqual({ kind: 'wait' })
    expect(idOf(ask([optionOf('p/m', [learned])], { waitMs: 0 }))).toBe('learned')
    const capped = seatOf('capped', { caps: { concurrency: 1 } })
    capped.health.begin(1, 0)
    expect(ask([optionOf('p/m', [capped])])).toEqual({ kind: 'wait' })
    expect(ask([optionOf('p/m', [capped])], { waitMs: 0 }).kind).toBe('none')
    fail(capped, { verdict: 'broken' })
    expect(ask([optionOf('p/m', [capped])], { waitMs: 0 }).kind).toBe('none')
  })

  test('caps that are used up are a wait when that is short, and none otherwise', () => {
    const slow = seatOf('slow', { caps: { requestsPerMinute: 1 } })
    slow.health.begin(1, 0)
    expect(ask([optionOf('p/m', [slow])])).toEqual({ kind: 'none', retryAfterMs: 60_000 })
    const quick = seatOf('quick', { caps: { requestsPerMinute: 120 } })
    for (let call = 0; call < 120; call++) quick.health.begin(1, 0)
    expect(ask([optionOf('p/m', [quick])], { waitMs: 1_000 })).toEqual({ kind: 'wait', forMs: 500 })
    expect(ask([optionOf('p/m', [slow, quick])], { waitMs: 100 })).toEqual({ kind: 'none', retryAfterMs: 500 })
  })
})

test('a broken model is passed over where another of the same name is well, though it has but one channel', () => {
  const [first, next] = [seatOf('first'), seatOf('next')]
  const options = [optionOf('p/m', [first]), optionOf('q/m', [next], { priority: 1 })]
  fail(first)
  expect(idOf(ask(options))).toBe('next')
  fail(next)
  expect(idOf(ask(options))).toBe('first')
})

const asked = (options: readonly Option[]): Choosing => {
  return { options, policy: 'balanced', tried: [], tokens: 1, nowMs: 0, chance: chanceOf(5) }
}

test('a half-open channel is tried by one call at a time, however many come', () => {
  const seats = ['a', 'b', 'c', 'd'].map(id => seatOf(id))
  fail(seats[0]!)
  const options = [optionOf('p/m', seats)]
  const chance = chanceOf(11)
  const probing: string[] = []
  for (let call = 0; call < 1_000; call++) {
    const choice = ask(options, { policy: 'weighted', nowMs: 5_000, chance })
    if (choice.kind !== 'try') throw new Error(choice.kind)
    choice.seat.health.begin(1, 5_000)
    if (choice.seat.id === 'a') probing.push(choice.why)
  }
  expect(probing).toEqual(['policy'])
})

test('what is explained is what is chosen', () => {
  const fates: readonly Fate[] = [
    { verdict: 'broken' },
    { verdict: 'rate_limited', retryAfterMs: 5_000 },
    { verdict: 'credential_bad' },
    { verdict: 'quota_spent' },
    { verdict: 'answered', firstMs: 300 },
  ]
  const seatArb = fc.record({
    priority: fc.nat(2),
    weight: fc.nat(3),
    times: fc.nat(6),
    fate: fc.constantFrom(...fates),
    underWay: fc.nat(2),
    caps: fc.constantFrom<Caps>({}, { concurrency: 2 }, { requestsPerMinute: 3 }),
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
        optionOf(
          `p/${at}`,
          row.seats.map((seat, place) => damaged(`${at}.${place}`, seat)),
          {
            ...{ priority: row.priority, weight: row.weight, translates: row.translates, price: row.price },
          },
        ),
      )
      const tried: Tried[] = triedAt === null ? [] : [{ channelId: `0.${triedAt}`, verdict: 'broken' }]
      const choosing = { ...asked(options), policy, tried, waitMs, nowMs, chance: chanceOf(seed) }
      const explained = explainSeats(choosing)
      expect(explained).toHaveLength(rows.reduce((sum, { seats }) => sum + seats.length, 0))
      const open = explained.filter(({ dropped }) => dropped === null)
      const choice = choose(choosing)
      const untried = explained.filter(({ dropped }) => dropped !== 'tried')
      if (choice.kind === 'try') {
        const row = explained.find(({ channel }) => channel === choice.seat.id)!
        expect(row.dropped).not.toBe('tried')
        if (open.length > 0) expect(row.dropped).toBe(null)
      } else {
        expect(open).toEqual([])
        // Only caps may keep a call from a first attempt.
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
  readonly fate: Fate
  readonly underWay: number
  readonly caps: Caps
}

const hasCaps = ({ seats }: { readonly seats: readonly SeatRow[] }): boolean =>
  seats.some(({ caps }) => Object.keys(caps).length > 0)

function damaged(id: string, { times, fate, underWay, ...seat }: SeatRow): Seat {
  const made = seatOf(id, seat)
  fail(made, fate, times)
  for (let call = 0; call < underWay; call++) made.health.begin(1, 0)
  return made
}
