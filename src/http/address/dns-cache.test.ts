// Tests the DNS cache with a resolver and a clock that the tests control.

import { beforeEach, describe, expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { DnsCache } from './dns-cache.ts'
import type { ResolveName } from './name-lookup.ts'
import { lookUpBySystem } from './name-lookup.ts'

const { dnsFreshMsMax, dnsStaleMsMax, dnsEntriesMax, dnsRefreshMsMax, dnsRetryMsMin } = bounds
const { dnsLookupsMax, dnsLookupsOfAccountMax } = bounds

let nowMs: number
let lookups: string[]
let answer: (name: string) => Promise<readonly string[]>
let cache: DnsCache

beforeEach(() => {
  nowMs = 1_000_000
  lookups = []
  answer = async () => ['1.1.1.1']
  cache = new DnsCache({
    nowMs: () => nowMs,
    resolve(name) {
      lookups.push(name)
      return answer(name)
    },
  })
})

const fails = (): Promise<never> => Promise.reject(new Error('ENOTFOUND'))
const never = (): Promise<never> => new Promise(() => {})

test('a name is resolved once, and cached for a while', async () => {
  expect(cache.addressesOf('a')).toBeInstanceOf(Promise)
  expect(await cache.addressesOf('a')).toEqual(['1.1.1.1'])
  nowMs += dnsFreshMsMax - 1
  expect(cache.addressesOf('a')).toEqual(['1.1.1.1'])
  expect(lookups).toEqual(['a'])
  answer = async () => ['2.2.2.2']
  nowMs += 1
  expect(await cache.addressesOf('a')).toEqual(['2.2.2.2'])
  expect(cache.addressesOf('a')).toEqual(['2.2.2.2'])
  expect(lookups).toEqual(['a', 'a'])
})

test('concurrent requests share one lookup, also its failure', async () => {
  const results = await Promise.all(Array.from({ length: 50 }, () => cache.addressesOf('a')))
  expect(new Set(results.flat())).toEqual(new Set(['1.1.1.1']))
  expect(lookups).toEqual(['a'])
  answer = fails
  const failed = await Promise.allSettled(Array.from({ length: 50 }, () => cache.addressesOf('b')))
  expect(new Set(failed.map(({ status }) => status))).toEqual(new Set(['rejected']))
  expect(lookups).toEqual(['a', 'b'])
})

test('an empty answer is a failure', async () => {
  answer = async () => []
  await expect(cache.addressesOf('a') as Promise<unknown>).rejects.toThrow('its host name does not resolve')
})

describe('when lookups fail,', () => {
  test('the last answer is used for ten minutes, and no longer', async () => {
    await cache.addressesOf('a')
    answer = fails
    nowMs += dnsFreshMsMax
    expect(await cache.addressesOf('a')).toEqual(['1.1.1.1'])
    // The cached answer is returned at once until the next lookup is due.
    expect(cache.addressesOf('a')).toEqual(['1.1.1.1'])
    expect(lookups).toHaveLength(2)
    nowMs += dnsRetryMsMin
    expect(await cache.addressesOf('a')).toEqual(['1.1.1.1'])
    expect(lookups).toHaveLength(3)
    nowMs = 1_000_000 + dnsStaleMsMax
    await expect(cache.addressesOf('a') as Promise<unknown>).rejects.toThrow('ENOTFOUND')
    answer = async () => ['3.3.3.3']
    expect(await cache.addressesOf('a')).toEqual(['3.3.3.3'])
  })

  test('a slow lookup is not waited for if there is a cached answer', async () => {
    await cache.addressesOf('a')
    answer = never
    nowMs += dnsFreshMsMax
    // Timers end in the order of their times, however slow the machine is.
    const ended: string[] = []
    const timers = [dnsRefreshMsMax / 2, bounds.dnsLookupMsMax / 2].map(ms =>
      setTimeout(() => ended.push(`${ms} ms`), ms),
    )
    expect(await cache.addressesOf('a')).toEqual(['1.1.1.1'])
    expect(ended).toEqual([`${dnsRefreshMsMax / 2} ms`])
    for (const timer of timers) clearTimeout(timer)
  })

  test('a name that never resolved is looked up each time', async () => {
    answer = fails
    for (const times of [1, 2, 3]) {
      await expect(cache.addressesOf('a') as Promise<unknown>).rejects.toThrow('ENOTFOUND')
      expect(lookups).toHaveLength(times)
    }
  })
})

describe('lookups under way', () => {
  const TOO_MANY = 'its host name does not resolve: too many names are looked up'
  const open: PromiseWithResolvers<readonly string[]>[] = []
  const look = (name: string, accountId?: number): Promise<unknown> =>
    Promise.resolve(cache.addressesOf(name, accountId)).catch((fault: Error) => fault.message)

  beforeEach(() => {
    open.length = 0
    answer = () => {
      const lookup = Promise.withResolvers<readonly string[]>()
      open.push(lookup)
      return lookup.promise
    }
  })

  test('of one account are limited, and those of others go on', async () => {
    for (let index = 0; index < dnsLookupsOfAccountMax; index++) void look(`n${index}`, 1)
    expect(await look('one-more', 1)).toBe(TOO_MANY)
    expect(lookups).toHaveLength(dnsLookupsOfAccountMax)
    // A name that is being looked up is awaited, whoever has asked first.
    const [shared, other] = [look('n0', 1), look('of-another', 2)]
    expect(lookups).toHaveLength(dnsLookupsOfAccountMax + 1)
    for (const { resolve } of open) resolve(['1.1.1.1'])
    expect([await shared, await other]).toEqual([['1.1.1.1'], ['1.1.1.1']])
    answer = async () => ['2.2.2.2']
    expect(await look('one-more', 1)).toEqual(['2.2.2.2'])
  })

  test('are limited in all, also those of the operator', async () => {
    for (let index = 0; index < dnsLookupsMax; index++) void look(`n${index}`, index % 100)
    expect([await look('a', 1_000), await look('b')]).toEqual([TOO_MANY, TOO_MANY])
    expect(lookups).toHaveLength(dnsLookupsMax)
    open[0]!.reject(new Error('ENOTFOUND'))
    open[1]!.resolve([])
    await Bun.sleep(0)
    for (const name of ['a', 'b']) void look(name)
    expect(lookups).toHaveLength(dnsLookupsMax + 2)
  })

  test('leave a name that is known already with its last answer', async () => {
    const known = look('known', 1)
    open[0]!.resolve(['1.1.1.1'])
    await known
    nowMs += dnsFreshMsMax
    for (let index = 0; index < dnsLookupsOfAccountMax; index++) void look(`n${index}`, 1)
    expect(cache.addressesOf('known', 1)).toEqual(['1.1.1.1'])
  })

  test('count until they have really ended, and their late answer is used', async () => {
    const resolve: ResolveName = name => {
      lookups.push(name)
      return answer(name)
    }
    cache = new DnsCache({ nowMs: () => nowMs, resolve, msMax: 20 })
    const late = Array.from({ length: dnsLookupsOfAccountMax }, (_, index) => look(`n${index}`, 1))
    const LATE = 'its host name was not resolved in time'
    expect(new Set(await Promise.all(late))).toEqual(new Set([LATE]))
    // Nobody waits for them any more.
    expect([await look('n0', 1), await look('one-more', 1)]).toEqual([LATE, TOO_MANY])
    expect(lookups).toHaveLength(dnsLookupsOfAccountMax)
    open[0]!.resolve(['3.3.3.3'])
    await Bun.sleep(0)
    expect(cache.addressesOf('n0', 1)).toEqual(['3.3.3.3'])
    void look('one-more', 1)
    expect(lookups.at(-1)).toBe('one-more')
  })
})

test('the number of cached names is bounded, and the newest stay', async () => {
  for (let index = 0; index <= dnsEntriesMax; index++) await cache.addressesOf(`n${index}`)
  expect(cache.addressesOf('n1')).toEqual(['1.1.1.1'])
  expect(cache.addressesOf('n0')).toBeInstanceOf(Promise)
})

test('errors of the system have a text of their own', async () => {
  const system = new DnsCache({ resolve: lookUpBySystem, nowMs: () => nowMs })
  expect(await system.addressesOf('localhost')).toContain('127.0.0.1')
  // Where no name server answers, the system gives up later than the cache.
  await expect(system.addressesOf('weir.invalid') as Promise<unknown>).rejects.toThrow(
    /^its host name (does not resolve: E|was not resolved in time$)/,
  )
})
