// Limits of attempts (signing in, codes, registrations) over several processes: exact with Redis, divided without it.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { spansMs } from '../../src/base/collections/gcra.ts'
import { buildLog } from '../../src/base/log.ts'
import { Secret } from '../../src/base/secrets/secret.ts'
import { openLimits } from '../../src/boot/open-limits.ts'
import { SignInLimits } from '../../src/identity/sign-in-limits.ts'
import type { RedisConnection } from '../../src/store/redis/client.ts'
import { LimitCounters } from '../../src/store/redis/limit-counters.ts'
import { subject } from '../limits/rows.ts'
import type { TestRedis } from '../support/redis.ts'
import { hasRedis, startRedis, tellMissingRedis } from '../support/redis.ts'
import { beginPatience, COMMAND_MS, untilUp } from './patience.ts'

tellMissingRedis()

interface TestProcess {
  readonly limits: SignInLimits
  trySignIn(name: string, network: string, isKnown?: boolean): Promise<(() => void) | undefined>
}

let ms = 0
let count = 1

function openProcess(counters?: LimitCounters): TestProcess {
  const limits = new SignInLimits({ nowMs: () => ms, attemptSharing: { processes: () => count, counters } })
  return {
    limits,
    trySignIn: (name, network, isKnown = false) =>
      limits.countOrRefuse({ name, network, isKnown }).catch(() => undefined),
  }
}

/** How many attempts are admitted if they go to each process in turn. */
async function admitted(processes: readonly TestProcess[], tries: number, attempt: Attempt): Promise<number> {
  let admittedCount = 0
  for (let at = 0; at < tries; at++) {
    if ((await attempt(processes[at % processes.length]!, at)) !== undefined) admittedCount++
  }
  return admittedCount
}
type Attempt = (process: TestProcess, at: number) => Promise<unknown>

const samePair: Attempt = ({ trySignIn }) => trySignIn('anna@example.com', 'here')

beforeEach(() => {
  ms = 1_000_000
  count = 1
})

test('without Redis, each process has its share of the attempts, also after their number has changed', async () => {
  const processes = [openProcess(), openProcess()]
  count = 2
  expect(await admitted(processes, 40, samePair)).toBe(10)
  count = 4
  expect(await admitted(processes, 40, samePair)).toBe(0)
  ms += 600_000
  expect(await admitted(processes, 40, samePair)).toBe(4) // two of ten each
  count = 1
  ms += 600_000
  expect(await admitted(processes.slice(0, 1), 40, samePair)).toBe(10)
})

describe.if(hasRedis)('with Redis', () => {
  let redis: TestRedis
  let connections: RedisConnection[]
  let counters: LimitCounters[]
  let processes: TestProcess[]

  beforeEach(async () => {
    redis = await startRedis()
    count = 2
    connections = await Promise.all([1, 2].map(() => redis.open({ deadlineMs: 30_000, probeMs: 20 })))
    await untilUp(...connections)
    counters = connections.map((connection, at) => {
      return new LimitCounters({ connection, namespace: 'test', process: `${at + 1}.1`, nowMs: () => ms })
    })
    processes = counters.map(openProcess)
  })
  afterEach(async () => {
    for (const each of counters) await each.close()
    await redis.stop()
  })

  test('all processes count attempts together, from the first one on', async () => {
    expect(await admitted(processes, 40, samePair)).toBe(10)
    ms += 60_000
    expect(await admitted(processes.toReversed(), 40, samePair)).toBe(1)
    const fromAnywhere: Attempt = ({ trySignIn }, at) => trySignIn('b', `place ${at}`)
    expect(await admitted(processes, 100, fromAnywhere)).toBe(30)
    const anyName: Attempt = ({ trySignIn }, at) => trySignIn(`name ${at}`, 'there')
    expect(await admitted(processes, 100, anyName)).toBe(50)
  })

  test('an attempt that was right is refunded for all', async () => {
    const [one, other] = processes as [TestProcess, TestProcess]
    for (let at = 0; at < 30; at++) {
      const refund = await one.trySignIn('a', 'here')
      refund!()
      await counters[0]!.renew() // sends the refund
    }
    expect(await admitted([other], 40, ({ trySignIn }) => trySignIn('a', 'here'))).toBe(10)
  })

  test('a limit that is only checked refuses an attempt and does not count it', async () => {
    const known: Attempt = ({ trySignIn }, at) => trySignIn(`name ${Math.floor(at / 10)}`, 'office', true)
    expect(await admitted(processes, 300, known)).toBe(200)
    // The limit of known names at the address is used up. Refused attempts use up nothing of other limits.
    expect(await admitted(processes, 60, ({ trySignIn }) => trySignIn('x', 'office'))).toBe(0)
    ms += 3_000
    expect(await admitted(processes, 60, ({ trySignIn }) => trySignIn('x', 'office'))).toBe(10)
    expect(await admitted(processes, 10, ({ trySignIn }) => trySignIn('y', 'office', true))).toBe(1)
  })

  test('while Redis is away, each process has what is left of its share', async () => {
    expect(await admitted(processes, 6, samePair)).toBe(6)
    await redis.kill()
    while (connections.some(({ isUp }) => isUp)) await Bun.sleep(1)
    expect(await admitted(processes, 40, samePair)).toBe(4)
    await redis.start()
    while (connections.some(({ isUp }) => !isUp)) await Bun.sleep(1)
    expect(await admitted(processes, 40, samePair)).toBe(10) // it has lost its data: one more burst
  })

  test('Redis gets no names and no addresses', async () => {
    await admitted(processes, 2, samePair)
    const keys = (await redis.send('KEYS', '*')) as string[]
    expect(keys.filter(key => key.includes('sign-in'))).toHaveLength(3)
    expect(keys.filter(key => /anna|here/.test(key))).toEqual([])
  })

  test('explanations have a limit of their own, of all processes together', async () => {
    const endPatience = beginPatience(COMMAND_MS)
    const opened = ['1.1', '2.1'].map(process => {
      const shared = { redisUrl: new Secret(redis.url), namespace: 'gateway', process, count: () => 2 }
      const log = buildLog('error', () => {})
      const loadDebts = async () => []
      return openLimits({ processes: { ...shared, loadDebts }, restored: new Map(), log, dateMs: () => 0 })
    })
    await untilUp(...opened.map(({ connection }) => connection!))
    const call = subject({ qpm: 6 })
    const serverMs = async (): Promise<number> => Number(((await redis.send('TIME')) as string[])[0]) * 1_000
    /** How many calls more are admitted than the six of the limit and what it refills meanwhile. */
    const over = async (limits: 'limits' | 'explanationLimits'): Promise<number> => {
      const sinceMs = await serverMs()
      let calls = 0
      for (let at = 0; at < 30; at++) if ((await opened[at % 2]![limits].admit(call, ms)).admitted) calls++
      return calls - 6 - Math.floor(((await serverMs()) - sinceMs) / 10_000)
    }
    // The first call of each kind fills the empty Redis, and is counted by its process alone.
    for (const each of ['limits', 'explanationLimits'] as const) {
      while ((await redis.send('EXISTS', `{weir}:gateway${each === 'limits' ? '' : ':explanations'}:born`)) === 0) {
        await opened[0]![each].admit(subject({ keyId: 99 }), (ms += spansMs.minute))
      }
      expect(Math.abs(await over(each))).toBeLessThanOrEqual(1)
    }
    for (const { close } of opened) await close()
    endPatience()
  })
})
