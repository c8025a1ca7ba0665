// The connection to Redis: deadlines, what counts as away, and how it comes back.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { RedisAway, redisScript } from '../../src/store/redis/client.ts'
import type { TestRedis } from '../support/redis.ts'
import { hasRedis, startRedis, tellMissingRedis } from '../support/redis.ts'

tellMissingRedis()

const script = redisScript("return redis.call('INCR', KEYS[1])")

describe.if(hasRedis)('the connection to Redis', () => {
  let redis: TestRedis
  beforeEach(async () => {
    redis = await startRedis()
  })
  afterEach(() => redis.stop())

  /** A connection, and the changes of its state. */
  async function open(deadlineMs?: number) {
    const changes: boolean[] = []
    let notify = (): void => {}
    const onChange = (isUp: boolean): void => {
      changes.push(isUp)
      notify()
    }
    const connection = await redis.open({ onChange, probeMs: 20, ...(deadlineMs !== undefined && { deadlineMs }) })
    const until = async (isUp: boolean): Promise<void> => {
      while (connection.isUp !== isUp) await new Promise<void>(resolve => (notify = resolve))
    }
    return { connection, changes, until }
  }

  test('sends the text of a script only to a server that does not know it', async () => {
    const { connection, until } = await open(30_000)
    await until(true)
    expect(await connection.run(script, ['k'], [])).toBe(1)
    await redis.send('SCRIPT', 'FLUSH')
    expect(await connection.run(script, ['k'], [])).toBe(2)
    expect(await connection.run(script, ['k'], [])).toBe(3)
    const stats = String(await redis.send('INFO', 'commandstats'))
    // The first one was that of the connection.
    expect(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1]).toBe('3')
  })

  test('gives up a server that does not answer after three commands, and uses it again when it answers', async () => {
    const { connection, changes, until } = await open(100)
    await until(true)
    redis.signal('SIGSTOP')
    for (let failures = 0; failures < 3; failures++) {
      expect(connection.isUp).toBe(true)
      await expect(connection.send('PING', [])).rejects.toThrow('Redis has not answered within 100 ms')
    }
    expect([connection.isUp, changes]).toEqual([false, [true, false]])
    await expect(connection.send('PING', [])).rejects.toThrow(RedisAway)
    redis.signal('SIGCONT')
    await until(true)
    // A busy machine may need longer than the deadline for one command, and lose the connection again for three.
    const ping = (): Promise<unknown> => connection.send('PING', []).catch(() => undefined)
    let answer = await ping()
    for (; answer === undefined; answer = await ping()) await Bun.sleep(5)
    expect(answer).toBe('PONG')
  })

  test('a command that succeeds begins the count of failures again', async () => {
    const { connection, until } = await open(30_000)
    await until(true)
    const fail = async (): Promise<void> => await expect(connection.send('NO_SUCH_COMMAND', [])).rejects.toThrow()
    for (let round = 0; round < 3; round++) {
      await fail()
      await fail()
      await connection.send('PING', [])
    }
    expect(connection.isUp).toBe(true)
    for (let failures = 0; failures < 3; failures++) await fail()
    expect(connection.isUp).toBe(false)
  })

  test('notices at once that the server is gone, and that it is back', async () => {
    const { connection, until } = await open(30_000)
    await until(true)
    let timesUp = 0
    connection.onUp(() => timesUp++)
    await redis.kill()
    await until(false)
    await redis.start()
    await until(true)
    expect([await connection.send('PING', []), timesUp]).toEqual(['PONG', 1])
  })

  test('does not use a server that refuses to write', async () => {
    await redis.send('CONFIG', 'SET', 'min-replicas-to-write', '1')
    const { connection, until } = await open(30_000)
    expect(connection.isUp).toBe(false)
    await redis.send('CONFIG', 'SET', 'min-replicas-to-write', '0')
    await until(true)
    expect(await connection.send('PING', [])).toBe('PONG')
  })

  test.each([
    ['has no memory left', 'CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0', /: OOM /],
    ['lets it run no scripts', 'ACL SETUSER default -@scripting', 'ACL SETUSER default +@all', /: NOPERM /],
  ])('does not use a server that %s, and says why once', async (_name, refuse, permit, why) => {
    const sendText = (text: string): Promise<unknown> => {
      const [name, ...values] = text.split(' ')
      return redis.send(name!, ...values)
    }
    await sendText(refuse)
    const told: (readonly [isUp: boolean, reason: string])[] = []
    const opened = Promise.withResolvers<void>()
    const onChange = (isUp: boolean, reason: string): void => {
      told.push([isUp, reason])
      if (isUp) opened.resolve()
    }
    const connection = await redis.open({ deadlineMs: 30_000, probeMs: 1, onChange })
    expect(connection.isUp).toBe(false)
    const countTries = async (): Promise<number> => {
      const counts = /cmdstat_eval:.*rejected_calls=(\d+),failed_calls=(\d+)/
      const [, refused = 0, failed = 0] = counts.exec(String(await sendText('INFO commandstats'))) ?? []
      return Number(refused) + Number(failed)
    }
    while ((await countTries()) < 5) await Bun.sleep(1)
    await sendText(permit)
    await opened.promise
    expect(told).toEqual([
      [false, expect.stringMatching(why)],
      [true, ''],
    ])
  })
})
