// Affinity of several processes on a real Redis: a conversation continues on its channel, whichever process gets it.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { SharedAffinity } from '../../src/routing/choice/shared-affinity.ts'
import type { RedisConnection } from '../../src/store/redis/client.ts'
import type { TestRedis } from '../support/redis.ts'
import { hasRedis, startRedis, tellMissingRedis } from '../support/redis.ts'
import { untilUp } from './patience.ts'

tellMissingRedis()

describe.if(hasRedis)('the affinity of two processes', () => {
  let redis: TestRedis
  let connections: RedisConnection[]
  let one: SharedAffinity
  let other: SharedAffinity

  beforeEach(async () => {
    redis = await startRedis()
    connections = await Promise.all([1, 2].map(() => redis.open({ deadlineMs: 30_000, probeMs: 20 })))
    await untilUp(...connections)
    ;[one, other] = connections.map(connection => new SharedAffinity({ connection, namespace: 'test' })) as [
      SharedAffinity,
      SharedAffinity,
    ]
  })
  afterEach(() => redis.stop())

  const nowMs = 1_000
  const first = { channelId: 'first', model: 'p/m' }
  const second = { channelId: 'second', model: 'p/n' }
  const times = (ttlMs?: number) => ({ ttlMs, nowMs })
  const key = '{weir}:test:affinity:7:1:2'
  /** An entry is sent without waiting. A further command on the same connection comes after it. */
  const sent = () => Promise.all(connections.map(connection => connection.send('PING', [])))

  test('is known to both, and the last answer counts', async () => {
    one.set('7:1:2', first, times())
    await sent()
    expect(other.get('7:1:2', nowMs)).toBeUndefined()
    await other.recall('7:1:2', nowMs)
    expect(other.get('7:1:2', nowMs)).toMatchObject(first)
    other.set('7:1:2', second, times())
    await sent()
    await one.recall('7:1:2', nowMs)
    expect(one.get('7:1:2', nowMs)).toMatchObject(second)
    await one.recall('7:8:9', nowMs)
    expect(one.get('7:8:9', nowMs)).toBeUndefined()
  })

  test('is kept as long as the provider keeps the prompt, also in the process that has learned of it', async () => {
    one.set('7:1:2', first, times(20_000))
    one.set('7:1:3', first, times(10 * bounds.affinityMsMax))
    one.set('7:1:4', first, times(0))
    await sent()
    const [short, long] = await Promise.all([key, '{weir}:test:affinity:7:1:3'].map(name => redis.send('PTTL', name)))
    expect(short).toBeGreaterThan(0)
    expect(short).toBeLessThanOrEqual(20_000)
    expect(long).toBeGreaterThan(20_000)
    expect(long).toBeLessThanOrEqual(bounds.affinityMsMax)
    expect(await redis.send('KEYS', '*affinity*')).toHaveLength(2)
    await other.recall('7:1:2', nowMs)
    expect(other.peek('7:1:2', nowMs + 19_999)).toMatchObject(first)
    expect(other.peek('7:1:2', nowMs + 20_000)).toBeUndefined()
  })

  test('is that of each process alone while Redis is away, and a damaged entry is none', async () => {
    await redis.send('SET', key, 'damaged')
    await one.recall('7:1:2', nowMs)
    expect(one.get('7:1:2', nowMs)).toBeUndefined()
    expect(one.isShared).toBe(true)
    await redis.kill()
    while (connections.some(({ isUp }) => isUp)) await Bun.sleep(1)
    expect(one.isShared).toBe(false)
    one.set('7:1:2', first, times())
    await other.recall('7:1:2', nowMs)
    expect([one.get('7:1:2', nowMs), other.get('7:1:2', nowMs)]).toEqual([expect.objectContaining(first), undefined])
  })
})
