// Where names lead, with a resolver that a test leads and a clock that it moves.

import { beforeEach, describe, expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { Names } from './dns-cache.ts'

const { namesFreshMsMax, namesKnownMsMax, namesKnownMax, nameRefreshMsMax, nameRetryMsMin } = bounds

let nowMs: number
let asked: string[]
let answer: (name: string) => Promise<readonly string[]>
let names: Names

beforeEach(() => {
  nowMs = 1_000_000
  asked = []
  answer = async () => ['1.1.1.1']
  names = new Names({
    nowMs: () => nowMs,
    resolve(name) {
      asked.push(name)
      return answer(name)
    },
  })
})

const fails = (): Promise<never> => Promise.reject(new Error('ENOTFOUND'))
const never = (): Promise<never> => new Promise(() => {})

test('a name is asked for once, and known at once for a while', async () => {
  expect(names.addressesOf('a')).toBeInstanceOf(Promise)
  expect(await names.addressesOf('a')).toEqual(['1.1.1.1'])
  nowMs += namesFreshMsMax - 1
  expect(names.addressesOf('a')).toEqual(['1.1.1.1'])
  expect(asked).toEqual(['a'])
  answer = async () => ['2.2.2.2']
  nowMs += 1
  expect(await names.addressesOf('a')).toEqual(['2.2.2.2'])
  expect(names.addressesOf('a')).toEqual(['2.2.2.2'])
  expect(asked).toEqual(['a', 'a'])
})

test('many who want to know at once are told by one answer, and so is its failure', async () => {
  const told = await Promise.all(Array.from({ length: 50 }, () => names.addressesOf('a')))
  expect(new Set(told.flat())).toEqual(new Set(['1.1.1.1']))
  expect(asked).toEqual(['a'])
  answer = fails
  const failed = await Promise.allSettled(Array.from({ length: 50 }, () => names.addressesOf('b')))
  expect(new Set(failed.map(({ status }) => status))).toEqual(new Set(['rejected']))
  expect(asked).toEqual(['a', 'b'])
})

test('an answer of nothing is none', async () => {
  answer = async () => []
  await expect(names.addressesOf('a') as Promise<unknown>).rejects.toThrow('its host name does not resolve')
})

describe('where nobody can be asked', () => {
  test('the last good answer serves for ten minutes, and no longer', async () => {
    await names.addressesOf('a')
    answer = fails
    nowMs += namesFreshMsMax
    expect(await names.addressesOf('a')).toEqual(['1.1.1.1'])
    // At once until the next try is due.
    expect(names.addressesOf('a')).toEqual(['1.1.1.1'])
    expect(asked).toHaveLength(2)
    nowMs += nameRetryMsMin
    expect(await names.addressesOf('a')).toEqual(['1.1.1.1'])
    expect(asked).toHaveLength(3)
    nowMs = 1_000_000 + namesKnownMsMax
    await expect(names.addressesOf('a') as Promise<unknown>).rejects.toThrow('ENOTFOUND')
    answer = async () => ['3.3.3.3']
    expect(await names.addressesOf('a')).toEqual(['3.3.3.3'])
  })

  test('an answer that does not come is not waited for where there is an older one', async () => {
    await names.addressesOf('a')
    answer = never
    nowMs += namesFreshMsMax
    const sinceMs = performance.now()
    expect(await names.addressesOf('a')).toEqual(['1.1.1.1'])
    const tookMs = performance.now() - sinceMs
    expect(tookMs).toBeGreaterThanOrEqual(nameRefreshMsMax - 50)
    expect(tookMs).toBeLessThan(bounds.nameLookupMsMax / 2)
  })

  test('a name that never led anywhere is asked for each time', async () => {
    answer = fails
    for (const times of [1, 2, 3]) {
      await expect(names.addressesOf('a') as Promise<unknown>).rejects.toThrow('ENOTFOUND')
      expect(asked).toHaveLength(times)
    }
  })
})

test('so many names are known and no more, the newest of them', async () => {
  for (let index = 0; index <= namesKnownMax; index++) await names.addressesOf(`n${index}`)
  expect(names.addressesOf('n1')).toEqual(['1.1.1.1'])
  expect(names.addressesOf('n0')).toBeInstanceOf(Promise)
})

test('the system is asked where nobody else is given', async () => {
  const system = new Names({ nowMs: () => nowMs })
  expect(await system.addressesOf('localhost')).toContain('127.0.0.1')
  await expect(system.addressesOf('weir.invalid') as Promise<unknown>).rejects.toThrow(
    'its host name does not resolve: E',
  )
})
