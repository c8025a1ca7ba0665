// What limits do besides counting: admit all or nothing, keep state when rules change, forget idle subjects, and stay
// within bounded memory.

import { describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { plainNames } from '../../src/base/text/rule-names.ts'
import { joinLeases } from '../../src/limits/leases.ts'
import type { CountedCall } from '../../src/limits/limit-owner.ts'
import type { LimitedCall } from '../../src/limits/limited-call.ts'
import { Limits } from '../../src/limits/limits.ts'
import type { LimitRow } from '../../src/store/rules/rules.ts'
import { concurrency, howMany, leaseOf, requests, row, subject, tokens } from './rows.ts'

const MINUTE_MS = 60_000

function limitsOf(...rows: LimitRow[]): Limits {
  const limits = new Limits()
  limits.setRules(rows)
  return limits
}

describe('a model whose names change', () => {
  const [old, found] = [plainNames('x'), plainNames('x', 'server/x')]

  test('is limited by its new names from the next call on', () => {
    const limits = limitsOf(row(1, { ...requests(1), model: 'server/*' }))
    const before = subject({ model: 'a/x', names: old })
    expect(howMany(limits, before, { nowMs: 0, most: 3 })).toBe(3)
    expect(howMany(limits, { ...before, names: found }, { nowMs: 0 })).toBe(1)
  })

  test('is counted once by each limit, also by a call that waited for it', () => {
    const limits = limitsOf(
      row(1, requests(5)),
      row(2, { ...requests(3), model: 'server/*' }),
      row(3, { ...requests(2), per: ['key', 'model'] }),
      row(4, { ...concurrency(9), model: 'server/*' }),
    )
    const [before, after] = [subject({ model: 'x', names: old }), subject({ model: 'server/x', names: found })]
    const admitted = limits.admit(before, 0)
    const first = leaseOf(admitted)
    const { rules } = admitted as typeof admitted & { admitted: true }
    const rest = limits.admitRest(after, { call: before, rules }, 0)
    const left = limits.quotasOfCall(after, 0).map(({ limit, remaining }) => [limit, remaining])
    expect(left.toSorted(([a], [b]) => a! - b!)).toEqual([
      [2, 1],
      [3, 2],
      [5, 4],
      [9, 8],
      [100_000, 99_999],
    ])
    const both = joinLeases(first, leaseOf(rest))
    both.release()
    both.release()
    expect(limits.quotasOfCall(after, 0).find(({ resource }) => resource === 'concurrency')?.remaining).toBe(9)
    expect(limits.admitRest(after, { call: after, rules }, 0)).toMatchObject({ admitted: true }) // nothing more to count
    expect(limits.quotasOfCall(after, 0).find(({ limit }) => limit === 5)?.remaining).toBe(4)
    for (let calls = 0; calls < 1; calls++) expect(limits.admit(after, 0).admitted).toBe(true)
    expect(limits.admitRest(after, { call: before, rules }, 0)).toMatchObject({ admitted: false, by: { limit: 2 } })
    expect(limits.quotasOfCall(after, 0).find(({ limit }) => limit === 3)?.remaining).toBe(1) // none or all
  })
})

describe('a call that is admitted again because the configuration has changed', () => {
  const countedBy = (limits: Limits, call: LimitedCall): CountedCall => {
    const admitted = limits.admit(call, 0)
    if (!admitted.admitted) throw new Error('refused')
    return { call, rules: admitted.rules }
  }
  const left = (limits: Limits, call: LimitedCall) =>
    Object.fromEntries(limits.quotasOfCall(call, 0).map(({ limit, remaining }) => [limit, remaining]))

  test('is counted by a limit that is new, and not again by those that stay', () => {
    const limits = limitsOf(row(1, requests(5)))
    const call = subject({ model: 'x' })
    const counted = countedBy(limits, call)
    limits.setRules([row(1, requests(5)), row(2, requests(1)), row(3, { ...requests(7), per: ['key', 'model'] })])
    expect(limits.admitRest(call, counted, 0)).toMatchObject({ admitted: true })
    expect(left(limits, call)).toMatchObject({ 1: 0, 5: 4, 7: 6 })
    expect(limits.admit(call, 0)).toMatchObject({ admitted: false, by: { limit: 1 } })
  })

  test('is counted by the limits of its new tier', () => {
    const limits = limitsOf(row(1, { ...requests(5), tier: 'free' }), row(2, { ...requests(2), tier: 'pro' }))
    const counted = countedBy(limits, subject({ model: 'x', tier: 'free' }))
    const after = subject({ model: 'x', tier: 'pro' })
    expect(limits.admitRest(after, counted, 0)).toMatchObject({ admitted: true })
    expect(left(limits, after)).toMatchObject({ 2: 1 })
  })

  test('is refused by a limit that is new and has nothing left', () => {
    const limits = limitsOf(row(1, requests(5)))
    const call = subject({ model: 'x' })
    const counted = countedBy(limits, call)
    limits.setRules([row(1, requests(5)), row(2, requests(1))])
    expect(limits.admit(call, 0).admitted).toBe(true)
    expect(limits.admitRest(call, counted, 0)).toMatchObject({ admitted: false, by: { limit: 1 } })
  })

  test('is counted once by a limit whose amount was changed', () => {
    const limits = limitsOf(row(1, requests(5)))
    const call = subject({ model: 'x' })
    const counted = countedBy(limits, call)
    limits.setRules([row(1, requests(10))])
    expect(limits.admitRest(call, counted, 0)).toMatchObject({ admitted: true })
    expect(left(limits, call)).toMatchObject({ 10: 8 }) // the part that was used stays the same
  })
})

describe('admission is one step:', () => {
  test('a call that one limit refuses is counted by none', () => {
    const limits = limitsOf(row(1, requests(5)), row(2, { ...requests(2), model: 'anthropic/*' }))
    const claude = subject({ model: 'anthropic/claude' })
    expect(howMany(limits, claude, { nowMs: 0 })).toBe(2)
    for (let tries = 0; tries < 50; tries++) expect(limits.admit(claude, 0).admitted).toBe(false)
    expect(howMany(limits, subject(), { nowMs: 0 })).toBe(3)
  })

  test('a refused call takes neither tokens nor a slot', () => {
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

  test('of several limits the one with the longest wait is reported, with its own message', () => {
    const limits = limitsOf(
      row(1, { ...requests(1), per: ['account'] }),
      row(2, { ...requests(1, 'day'), per: ['key', 'model'] }),
    )
    limits.admit(subject(), 0)
    const refused = limits.admit(subject(), 0)
    expect(refused).toMatchObject({ admitted: false, retryAfterMs: 86_400_000 })
    const tightest = { span: 'day', whose: 'this key for this model', remaining: 0 }
    expect(refused.admitted || refused.by).toMatchObject(tightest)
  })
})

describe('tokens', () => {
  test('of a call above the whole limit are admitted when the limit is full, and the rest is owed', () => {
    const limits = limitsOf(row(1, { ...tokens(1_000), per: ['key'] }))
    const large = subject({ tokens: 5_000 })
    const lease = leaseOf(limits.admit(large, 0))
    lease.correct(4_000, 0)
    lease.release()
    expect(limits.admit(subject({ tokens: 1 }), 3 * MINUTE_MS).admitted).toBe(false)
    expect(limits.admit(large, 4 * MINUTE_MS - 1).admitted).toBe(false)
    expect(limits.admit(large, 4 * MINUTE_MS).admitted).toBe(true)
  })

  test('that are reported twice count once', () => {
    const limits = limitsOf(row(1, { ...tokens(1_000), per: ['key'] }))
    const lease = leaseOf(limits.admit(subject({ tokens: 600 }), 0))
    for (const used of [100, 0, 900]) lease.correct(used, 0)
    expect(limits.quotasOfCall(subject(), 0)[1]).toMatchObject({ resource: 'tokens', remaining: 900 })
  })

  test('that are owed do not delay a call that uses none', () => {
    const limits = limitsOf(row(1, { ...tokens(10), per: ['key'] }))
    leaseOf(limits.admit(subject({ tokens: 10 }), 0)).correct(1_000, 0)
    expect(limits.admit(subject({ tokens: 0 }), 0).admitted).toBe(true)
    expect(limits.admit(subject({ tokens: 1 }), 0).admitted).toBe(false)
  })

  describe('a request without a model', () => {
    const noModel = { qpm: 5, model: null, tokens: 0 }
    const ofAccount = row(1, { ...requests(7), per: ['account'] })
    const ofDay = row(2, { ...requests(2), span: 'day', per: ['account'] })
    const slots = row(3, { ...concurrency(3), per: ['account'] })
    const unrelated = [
      row(4, { ...tokens(1), per: ['key'] }),
      row(5, { ...requests(1), per: ['key', 'model'] }),
      row(6, { ...requests(1), model: '*', per: ['key'] }),
    ]

    test('is one request in every limit per minute that is for any model', () => {
      const limits = limitsOf(ofAccount, ofDay, slots, ...unrelated)
      const [firstKey, secondKey] = [subject({ ...noModel, keyId: 1 }), subject({ ...noModel, keyId: 2 })]
      expect(howMany(limits, firstKey, { nowMs: 0 })).toBe(5)
      expect(howMany(limits, secondKey, { nowMs: 0 })).toBe(2)
      expect(limits.size.leases).toBe(0)
    })

    test('counts per day and takes a slot, too, if it calls a provider', () => {
      const providerCall = subject({ ...noModel, callsProvider: true })
      expect(howMany(limitsOf(ofAccount, ofDay, ...unrelated), providerCall, { nowMs: 0 })).toBe(2)
      const limits = limitsOf(ofAccount, slots, ...unrelated)
      const admitted = [1, 2, 3].map(() => leaseOf(limits.admit(providerCall, 0)))
      expect(limits.admit(providerCall, 0)).toMatchObject({ admitted: false, by: { resource: 'concurrency' } })
      for (const lease of admitted) lease.release()
      expect([limits.admit(providerCall, 0).admitted, limits.size.leases]).toEqual([true, 1])
    })
  })
})

describe('a change of rules', () => {
  const perKey = (amount: number) => row(1, { ...requests(amount), per: ['key'] })

  test('keeps what is owed to the rules that stay', () => {
    const limits = limitsOf(perKey(60))
    expect(howMany(limits, subject(), { nowMs: 0 })).toBe(60)
    limits.setRules([row(2, requests(1_000)), perKey(6)])
    expect(limits.admit(subject(), 0)).toMatchObject({ admitted: false, retryAfterMs: 10_000 })
    limits.setRules([perKey(600)])
    expect(limits.admit(subject(), 0)).toMatchObject({ admitted: false, retryAfterMs: 100 })
  })

  test('that changes nothing grants nothing, however often it is set', () => {
    const limits = limitsOf(perKey(7))
    let admitted = 0
    for (let round = 0; round < 100; round++) {
      limits.setRules([row(round + 2, requests(50 + round)), perKey(7)])
      admitted += howMany(limits, subject(), { nowMs: 0 })
    }
    expect(admitted).toBe(7)
  })

  test("of the key's own calls per minute applies at once, including what is owed", () => {
    const limits = limitsOf()
    expect(howMany(limits, subject({ qpm: 60 }), { nowMs: 0 })).toBe(60)
    expect(limits.admit(subject({ qpm: 6 }), 0)).toMatchObject({ admitted: false, retryAfterMs: 10_000 })
  })

  test('of another rule affects neither waiting nor running calls', () => {
    const rules = [row(1, { ...tokens(1_000), per: ['key'] }), row(2, { ...concurrency(2), per: ['key'] })]
    const limits = limitsOf(...rules)
    const lease = leaseOf(limits.admit(subject({ tokens: 800 }), 0))
    limits.setRules([row(3, { ...requests(100), per: ['key'] }), ...rules.toReversed()])
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

  test('that removes a rule removes what was owed to it', () => {
    const limits = limitsOf(perKey(3))
    const lease = leaseOf(limits.admit(subject(), 0))
    limits.setRules([])
    expect(howMany(limits, subject(), { nowMs: 0, most: 50 })).toBe(50)
    lease.release()
    expect(limits.size.leases).toBe(0)
  })

  test('of a window makes it another limit', () => {
    const limits = limitsOf(perKey(3))
    howMany(limits, subject(), { nowMs: 0 })
    limits.setRules([row(1, { ...requests(3, 'day'), per: ['key'] })])
    expect(howMany(limits, subject(), { nowMs: 0 })).toBe(3)
  })
})

describe('a call that would be refused anyway', () => {
  test('is recognised before its body is read, by limits of requests for any model', () => {
    const limits = limitsOf(row(1, { ...requests(3), per: ['account'] }), row(2, { ...requests(1), model: 'openai/*' }))
    expect(limits.refusalOfKey(subject(), 0)).toBeUndefined()
    limits.admit(subject(), 0)
    expect(limits.refusalOfKey(subject(), 0)).toBeUndefined()
    expect(howMany(limits, subject({ model: 'anthropic/claude' }), { nowMs: 0 })).toBe(2)
    expect(limits.refusalOfKey(subject(), 0)).toMatchObject({ retryAfterMs: 20_000, by: { whose: 'this account' } })
    expect(limits.refusalOfKey(subject({ accountId: 11 }), 0)).toBeUndefined()
  })

  test('is not counted by that check', () => {
    const limits = limitsOf(row(1, { ...requests(3), per: ['account'] }))
    for (let tries = 0; tries < 100; tries++) limits.refusalOfKey(subject({ qpm: 2 }), 0)
    expect(howMany(limits, subject({ qpm: 2 }), { nowMs: 0 })).toBe(2)
  })
})

describe('memory', () => {
  test('of callers that come once is freed when they owe nothing any more', () => {
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

  test('is never freed so early that two keys of an account have a limit each', () => {
    const shared = { per: ['account'] } as const
    const limits = limitsOf(row(1, { ...requests(4), ...shared }), row(2, { ...concurrency(1), ...shared }))
    const [one, two] = [subject({ keyId: 1, qpm: 1 }), subject({ keyId: 2 })]
    leaseOf(limits.admit(one, 0)).release()
    // By then the account owes nothing any more, but the key itself does.
    for (let call = 0; call < 50; call++) limits.admit(subject({ keyId: 3, accountId: 11 }), 30_000)
    const lease = leaseOf(limits.admit(two, 60_000))
    expect(limits.admit(one, 60_000)).toMatchObject({ admitted: false, by: { resource: 'concurrency' } })
    lease.release()
    expect(limits.admit(one, 60_000).admitted).toBe(true)
  })

  test('cannot be exhausted by calls of ever new models', () => {
    const limits = limitsOf(
      row(1, { ...requests(1, 'day'), per: ['key', 'model'] }),
      row(2, { ...tokens(1e9), per: ['model'] }),
    )
    const admits = (at: number, nowMs = 0): boolean => limits.admit(subject({ model: `openai/${at}` }), nowMs).admitted
    const admitted = Array.from({ length: 3_000 }, (_, at) => admits(at)).filter(Boolean).length
    expect(admitted).toBeLessThanOrEqual(bounds.limitedModelsOfKeyMax)
    expect(admitted).toBeGreaterThanOrEqual(bounds.limitedModelsOfKeyMax / 2)
    expect(limits.size.owners).toBeLessThan(2 * bounds.limitedModelsOfKeyMax)
    // Other keys are not delayed, and the key itself only for a while.
    expect(limits.admit(subject({ keyId: 2, model: 'openai/new' }), 0).admitted).toBe(true)
    const later = 2 * 86_400_000
    for (let call = 0; call < 5_000; call++) limits.admit(subject({ keyId: 2, model: null }), later)
    expect(admits(0, later) && admits(9_999, later)).toBe(true)
  })
})
