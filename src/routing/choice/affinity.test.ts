// Tests which channel a conversation continues on.

import { expect, test } from 'bun:test'
import { Affinity } from './affinity.ts'

const times = (nowMs: number, ttlMs?: number): { nowMs: number; ttlMs: number | undefined } => ({ nowMs, ttlMs })
const target = { channelId: 'c', model: 'p/m' }

test('a conversation is remembered for five minutes after its last use, or as long as the call requests, an hour at most', () => {
  const affinity = new Affinity()
  affinity.set('short', target, times(0))
  affinity.set('long', target, times(0, 3_600_000))
  affinity.set('longer', target, times(0, 9 * 3_600_000))
  affinity.set('never', target, times(0, -1))
  expect(affinity.get('short', 299_999)).toMatchObject(target)
  expect(affinity.get('short', 599_998)).toMatchObject(target)
  expect(affinity.get('short', 899_998)).toBeUndefined()
  expect(affinity.get('long', 3_599_999)).toMatchObject(target)
  expect(affinity.get('longer', 3_600_000)).toBeUndefined()
  expect(affinity.get('never', 0)).toBeUndefined()
  expect(affinity.get('unknown', 0)).toBeUndefined()
})

test('a conversation moves to another channel when that one has answered', () => {
  const affinity = new Affinity()
  affinity.set('one', target, times(0))
  affinity.set('one', { channelId: 'd', model: 'p/n' }, times(1))
  expect(affinity.get('one', 2)).toMatchObject({ channelId: 'd', model: 'p/n' })
})

test('conversations are bounded: the least recently used are forgotten first', () => {
  const affinity = new Affinity(100)
  affinity.set('used', target, times(0))
  for (let name = 0; name < 100_000; name++) {
    affinity.set(`n${name}`, target, times(0))
    if (name % 10 === 0) expect(affinity.get('used', 0)).toMatchObject(target)
    expect(affinity.size).toBeLessThanOrEqual(101)
  }
  for (let name = 99_960; name < 100_000; name++) expect(affinity.get(`n${name}`, 0)).toMatchObject(target)
  expect(affinity.get('n0', 0)).toBeUndefined()
})

test('after a clock jumps by ten minutes some conversations are forgotten, and none is remembered longer than its time', () => {
  const affinity = new Affinity()
  affinity.set('one', target, times(1_000_000))
  expect(affinity.get('one', 1_600_000)).toBeUndefined()
  affinity.set('two', target, times(1_000_000))
  expect(affinity.get('two', 400_000)).toMatchObject(target)
  expect(affinity.get('two', 700_000)).toBeUndefined()
})
