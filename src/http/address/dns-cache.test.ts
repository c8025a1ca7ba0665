// The DNS cache, with a resolver and a clock that the tests control.

import { beforeEach, describe, expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { DnsCache } from './dns-cache.ts'

const { dnsFreshMsMax, dnsStaleMsMax, dnsEntriesMax, dnsRefreshMsMax, dnsRetryMsMin } = bounds

let nowMs: number
let asked: string[]
let answer: (name: string) => Promise<readonly string[]>
let names: DnsCache

beforeEach(() => {
  nowMs = 1_000_000
  asked = []
  answer = async () => ['1.1.1.1']
  names = new DnsCache({
    nowMs: () => nowMs,
    resolve(name) {
      asked.push(name)
      return answer(name)
    },
  })
})

const fails = (): Promise<never> => Promise.reject(new Error('ENOTFOUND'))
const never = (): Promise<never> => new Promise(() => {})

test('a name is resolved once, and cached for a while', async () => {
  expect(names.addressesOf('a')).toBeInstanceOf(Promise)
  expect(await names.addressesOf('a')).toEqual(['1.1.1.1'])
  nowMs += dnsFreshMsMax - 1
  expect(names.addressesOf('a')).toEqual(['1.1.1.1'])
  expect(asked).toEqual(['a'])
  answer = async () => ['2.2.2.2']
  nowMs += 1
  expect(await names.addressesOf('a')).toEqual(['2.2.2.2'])
  expect(names.addressesOf('a')).toEqual(['2.2.2.2'])
  expect(asked).toEqual(['a', 'a'])
})

test('concurrent requests share one lookup, also its failure', async () => {
  const told = await Promise.all(Array.from({ length: 50 }, () => names.addressesOf('a')))
  expect(new Set(told.flat())).toEqual(new Set(['1.1.1.1']))
  expect(asked).toEqual(['a'])
  answer = fails
  const failed = await Promise.allSettled(Array.from({ length: 50 }, () => names.addressesOf('b')))
  expect(new Set(failed.map(({ status }) => status))).toEqual(new Set(['rejected']))
  expect(asked).toEqual(['a', 'b'])
})

test('an empty answer is a failure', async () => {
  answer = async () => []
  await expect(names.addressesOf('a') as Promise<unknown>).rejects.toThrow('its host name does not resolve')
})

describe('when lookups fail', () => {
  test('the last answer is used for ten minutes, and no longer', async () => {
    await names.addressesOf('a')
    answer = fails
    nowMs += dnsFreshMsMax
    expect(await names.addressesOf('a')).toEqual(['1.1.1.1'])
    // At once until the next try is due.
    expect(names.addressesOf('a')).toEqual(['1.1.1.1'])
    expect(asked).toHaveLength(2)
    nowMs += dnsRetryMsMin
    expect(await names.addressesOf('a')).toEqual(['1.1.1.1'])
    expect(asked).toHaveLength(3)
    nowMs = 1_000_000 + dnsStaleMsMax
    await expect(names.addressesOf('a') as Promise<unknown>).rejects.toThrow('ENOTFOUND')
    answer = async () => ['3.3.3.3']
    expect(await names.addressesOf('a')).toEqual(['3.3.3.3'])
  })

  test('a slow lookup is not waited for if there is a cached answer', async () => {
    await names.addressesOf('a')
    answer = never
    nowMs += dnsFreshMsMax
    const sinceMs = performance.now()
    expect(await names.addressesOf('a')).toEqual(['1.1.1.1'])
    const tookMs = performance.now() - sinceMs
    expect(tookMs).toBeGreaterThanOrEqual(dnsRefreshMsMax - 50)
    expect(tookMs).toBeLessThan(bounds.dnsLookupMsMax / 2)
  })

  test('a name that never resolved is looked up each time', async () => {
    answer = fails
    for (const times of [1, 2, 3]) {
      await expect(names.addressesOf('a') as Promise<unknown>).rejects.toThrow('ENOTFOUND')
      expect(asked).toHaveLength(times)
    }
  })
})

test('the number of cached names is bounded; the newest are kept', async () => {
  for (let index = 0; index <= dnsEntriesMax; index++) await names.addressesOf(`n${index}`)
  expect(names.addressesOf('n1')).toEqual(['1.1.1.1'])
  expect(names.addressesOf('n0')).toBeInstanceOf(Promise)
})

test('the resolver of the system is the default', async () => {
  const system = new DnsCache({ nowMs: () => nowMs })
  expect(await system.addressesOf('localhost')).toContain('127.0.0.1')
  await expect(system.addressesOf('weir.invalid') as Promise<unknown>).rejects.toThrow(
    'its host name does not resolve: E',
  )
})
