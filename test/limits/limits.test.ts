// What limits do beside counting: take all or nothing, go on when rules change, forget, and never hold too much.

import { describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { Limits } from '../../src/limits/limits.ts'
import type { LimitRow } from '../../src/store/rules/rules.ts'
import { concurrency, howMany, leaseOf, requests, row, subject, tokens } from './rows.ts'

const MINUTE_MS = 60_000

function limitsOf(...rows: LimitRow[]): Limits {
  const limits = new Limits()
  limits.setRules(rows)
  return limits
}

describe('one step', () => {
  test('a call that one limit refuses is counted by none', () => {
    const limits = limitsOf(row(1, requests(5)), row(2, { ...requests(2), model: 'anthropic/*' }))
    const claude = subject({ model: 'anthropic/claude' })
    expect(howMany(limits, claude, { nowMs: 0 })).toBe(2)
    for (let tries = 0; tries < 50; tries++) expect(limits.admit(claude, 0).admitted).toBe(false)
    expect(howMany(limits, subject(), { nowMs: 0 })).toBe(3)
  })

  test('neither its tokens nor its place are taken', () => {
    const limits = limitsOf(row(1, tokens(1_000)), row(2, concurrency(2)), row(3, requests(1, 'day')))
    leaseOf(limits.admit(subject(), 0)).release()
    for (let tries = 0; tries < 50; tries++) expect(limits.admit(subject(), 0).admitted).toBe(false)
    expect(limits.quotasOfCall(subject(), 0).map(({ resource, remaining }) => [resource, remaining])).toEqual([
      ['requests', 99_999],
      ['tokens', 900],
      ['concurrency', 2],
      ['requests', 0],
    ])
    expect(limits.size.leases).toBe(0)
  })

  test('the limit that takes longest is the one that is told, in words of its own', () => {
    const limits = limitsOf(
      row(1, { ...requests(1), per: ['account'] }),
      row(2, { ...requests(1, 'day'), per: ['key', 'model'] }),
    )
    limits.admit(subject(), 0)
    const refused = limits.admit(subject(), 0)
    expect(refused).toMatchObject({ admitted: false, retryAfterMs: 86_400_000 })
    const by = { span: 'day', whose: 'this key for this model', remaining: 0 }
    expect(refused.admitted || refused.by).toMatchObject(by)
  })
})

describe('tokens', () => {
  test('a call of more than the whole limit goes when all of it is there, and owes the rest', () => {
    const limits = limitsOf(row(1, { ...tokens(1_000), per: ['key'] }))
    const large = subject({ tokens: 5_000 })
    const lease = leaseOf(limits.admit(large, 0))
    lease.correct(4_000, 0)
    lease.release()
    expect(limits.admit(subject({ tokens: 1 }), 3 * MINUTE_MS).admitted).toBe(false)
    expect(limits.admit(large, 4 * MINUTE_MS - 1).admitted).toBe(false)
    expect(limits.admit(large, 4 * MINUTE_MS).admitted).toBe(true)
  })

  test('what is told twice counts once', () => {
    const limits = limitsOf(row(1, { ...tokens(1_000), per: ['key'] }))
    const lease = leaseOf(limits.admit(subject({ tokens: 600 }), 0))
    for (const used of [100, 0, 900]) lease.correct(used, 0)
    expect(limits.quotasOfCall(subject(), 0)[1]).toMatchObject({ resource: 'tokens', remaining: 900 })
  })

  test('what uses none is not held up by tokens that are owed', () => {
    const limits = limitsOf(row(1, { ...tokens(10), per: ['key'] }))
    leaseOf(limits.admit(subject({ tokens: 10 }), 0)).correct(1_000, 0)
    expect(limits.admit(subject({ tokens: 0 }), 0).admitted).toBe(true)
    expect(limits.admit(subject({ tokens: 1 }), 0).admitted).toBe(false)
  })

  describe('what calls no model', () => {
    const looks = { qpm: 5, model: null, tokens: 0 }
    const ofAccount = row(1, { ...requests(7), per: ['account'] })
    const ofDay = row(2, { ...requests(2), span: 'day', per: ['account'] })
    const places = row(3, { ...concurrency(3), per: ['account'] })
    const others = [
      row(4, { ...tokens(1), per: ['key'] }),
      row(5, { ...requests(1), per: ['key', 'model'] }),
      row(6, { ...requests(1), model: '*', per: ['key'] }),
    ]

    test('is one request in every limit of a minute that is for any model', () => {
      const limits = limitsOf(ofAccount, ofDay, places, ...others)
      const [one, other] = [subject({ ...looks, keyId: 1 }), subject({ ...looks, keyId: 2 })]
      expect(howMany(limits, one, { nowMs: 0 })).toBe(5)
      expect(howMany(limits, other, { nowMs: 0 })).toBe(2)
      expect(limits.size.leases).toBe(0)
    })

    test('is counted by days and has a place, too, where a provider is asked', () => {
      const asking = subject({ ...looks, callsProvider: true })
      expect(howMany(limitsOf(ofAccount, ofDay, ...others), asking, { nowMs: 0 })).toBe(2)
      const limits = limitsOf(ofAccount, places, ...others)
      const admitted = [1, 2, 3].map(() => leaseOf(limits.admit(asking, 0)))
      expect(limits.admit(asking, 0)).toMatchObject({ admitted: false, by: { resource: 'concurrency' } })
      for (const lease of admitted) lease.release()
      expect([limits.admit(asking, 0).admitted, limits.size.leases]).toEqual([true, 1])
    })
  })
})

describe('a change of rules', () => {
  const perKey = (amount: number) => row(1, { ...requests(amount), per: ['key'] })

  test('keeps what is owed by those that stay, in time', () => {
    const limits = limitsOf(perKey(60))
    expect(howMany(limits, subject(), { nowMs: 0 })).toBe(60)
    limits.setRules([row(2, requests(1_000)), perKey(6)])
    expect(limits.admit(subject(), 0)).toMatchObject({ admitted: false, retryAfterMs: 10_000 })
    limits.setRules([perKey(600)])
    expect(limits.admit(subject(), 0)).toMatchObject({ admitted: false, retryAfterMs: 100 })
  })

  test('that is none, told ever so often, gives nothing', () => {
    const limits = limitsOf(perKey(7))
    let admitted = 0
    for (let round = 0; round < 100; round++) {
      limits.setRules([row(round + 2, requests(50 + round)), perKey(7)])
      admitted += howMany(limits, subject(), { nowMs: 0 })
    }
    expect(admitted).toBe(7)
  })

  test('of the key’s own calls a minute is felt at once, also by what it owes', () => {
    const limits = limitsOf()
    expect(howMany(limits, subject({ qpm: 60 }), { nowMs: 0 })).toBe(60)
    expect(limits.admit(subject({ qpm: 6 }), 0)).toMatchObject({ admitted: false, retryAfterMs: 10_000 })
  })

  test('of another rule takes nobody’s place in line, nor its place', () => {
    const mine = [row(1, { ...tokens(1_000), per: ['key'] }), row(2, { ...concurrency(2), per: ['key'] })]
    const limits = limitsOf(...mine)
    const lease = leaseOf(limits.admit(subject({ tokens: 800 }), 0))
    limits.setRules([row(3, { ...requests(100), per: ['key'] }), ...mine.toReversed()])
    limits.admit(subject({ tokens: 0 }), 0)
    lease.correct(100, 0)
    lease.release()
    expect(
      limits
        .quotasOfCall(subject(), 0)
        .slice(2)
        .map(({ remaining }) => remaining),
    ).toEqual([1, 900])
  })

  test('that takes a rule away takes what was owed by it', () => {
    const limits = limitsOf(perKey(3))
    const lease = leaseOf(limits.admit(subject(), 0))
    limits.setRules([])
    expect(howMany(limits, subject(), { nowMs: 0, most: 50 })).toBe(50)
    lease.release()
    expect(limits.size.leases).toBe(0)
  })

  test('of its window makes it another limit', () => {
    const limits = limitsOf(perKey(3))
    howMany(limits, subject(), { nowMs: 0 })
    limits.setRules([row(1, { ...requests(3, 'day'), per: ['key'] })])
    expect(howMany(limits, subject(), { nowMs: 0 })).toBe(3)
  })
})

describe('what would be refused anyway', () => {
  test('is known before it is read, by limits of requests that ask for no model', () => {
    const limits = limitsOf(row(1, { ...requests(3), per: ['account'] }), row(2, { ...requests(1), model: 'openai/*' }))
    expect(limits.refusalOfKey(subject(), 0)).toBeUndefined()
    limits.admit(subject(), 0)
    expect(limits.refusalOfKey(subject(), 0)).toBeUndefined()
    expect(howMany(limits, subject({ model: 'anthropic/claude' }), { nowMs: 0 })).toBe(2)
    expect(limits.refusalOfKey(subject(), 0)).toMatchObject({ retryAfterMs: 20_000, by: { whose: 'this account' } })
    expect(limits.refusalOfKey(subject({ accountId: 11 }), 0)).toBeUndefined()
  })

  test('is not counted by being asked', () => {
    const limits = limitsOf(row(1, { ...requests(3), per: ['account'] }))
    for (let tries = 0; tries < 100; tries++) limits.refusalOfKey(subject({ qpm: 2 }), 0)
    expect(howMany(limits, subject({ qpm: 2 }), { nowMs: 0 })).toBe(2)
  })
})

describe('memory', () => {
  test('of callers that come once is given back when they owe nothing any more', () => {
    const limits = limitsOf(
      row(1, { ...requests(1_000), per: ['account'] }),
      row(2, { ...tokens(100_000), per: ['key', 'model'] }),
      row(3, { ...requests(1_000_000), per: ['model'] }),
    )
    let most = 0
    for (let call = 0; call < 60_000; call++) {
      leaseOf(limits.admit(subject({ keyId: call, accountId: -call }), call)).release()
      most = Math.max(most, limits.size.owners)
    }
    expect(most).toBeLessThan(50_000)
    for (let call = 0; call < 40_000; call++) limits.admit(subject({ keyId: 0 }), 10_000_000)
    expect(limits.size.owners).toBeLessThan(10)
  })

  test('is never so short that two keys of an account have a limit each', () => {
    const shared = { per: ['account'] } as const
    const limits = limitsOf(row(1, { ...requests(4), ...shared }), row(2, { ...concurrency(1), ...shared }))
    const [one, two] = [subject({ keyId: 1, qpm: 1 }), subject({ keyId: 2 })]
    leaseOf(limits.admit(one, 0)).release()
    // By then its account owes nothing any more, but the key itself does.
    for (let call = 0; call < 50; call++) limits.admit(subject({ keyId: 3, accountId: 11 }), 30_000)
    const lease = leaseOf(limits.admit(two, 60_000))
    expect(limits.admit(one, 60_000)).toMatchObject({ admitted: false, by: { resource: 'concurrency' } })
    lease.release()
    expect(limits.admit(one, 60_000).admitted).toBe(true)
  })

  test('is not to be had by asking for ever new models', () => {
    const limits = limitsOf(
      row(1, { ...requests(1, 'day'), per: ['key', 'model'] }),
      row(2, { ...tokens(1e9), per: ['model'] }),
    )
    const asks = (at: number, nowMs = 0): boolean => limits.admit(subject({ model: `openai/${at}` }), nowMs).admitted
    const admitted = Array.from({ length: 3_000 }, (_, at) => asks(at)).filter(Boolean).length
    expect(admitted).toBeLessThanOrEqual(bounds.limitedModelsOfKeyMax)
    expect(admitted).toBeGreaterThanOrEqual(bounds.limitedModelsOfKeyMax / 2)
    expect(limits.size.owners).toBeLessThan(2 * bounds.limitedModelsOfKeyMax)
    // Others are not held up, and the key itself not for ever.
    expect(limits.admit(subject({ keyId: 2, model: 'openai/new' }), 0).admitted).toBe(true)
    const later = 2 * 86_400_000
    for (let call = 0; call < 5_000; call++) limits.admit(subject({ keyId: 2, model: null }), later)
    expect(asks(0, later) && asks(9_999, later)).toBe(true)
  })
})
