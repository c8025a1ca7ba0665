// Limits of several processes on a real Redis with its own clock: exact together, divided without it, and within their
// bounds when it goes away and comes back.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Refusal } from '../../src/base/errors.ts'
import type { LimitLease } from '../../src/limits/leases.ts'
import type { LimitedCall } from '../../src/limits/limited-call.ts'
import { SharedLimits } from '../../src/limits/shared-limits.ts'
import { buildLimitRate } from '../../src/pipeline/20-limit-rate.ts'
import type { Caller } from '../../src/pipeline/exchange.ts'
import type { LimitDebt } from '../../src/store/ledger/limit-debts.ts'
import type { RedisConnection } from '../../src/store/redis/client.ts'
import { LimitCounters } from '../../src/store/redis/limit-counters.ts'
import type { LimitRow } from '../../src/store/rules/rules.ts'
import { concurrency, leaseOf, requests, row, subject, tokens } from '../limits/rows.ts'
import type { TestRedis } from '../support/redis.ts'
import { hasRedis, startRedis, tellMissingRedis } from '../support/redis.ts'
import { untilUp } from './patience.ts'

tellMissingRedis()

const noTrouble = (fault: unknown): void => expect(fault).toBeUndefined()

describe('without Redis, each process has its share:', () => {
  function openLimits(rows: readonly LimitRow[]) {
    let count = 1
    const parts = { processes: () => count, loadDebts: async () => [], dateMs: () => 0, onTrouble: noTrouble }
    const limits = new SharedLimits(parts)
    limits.setRules(rows)
    const admitted = async (call: LimitedCall, nowMs: number): Promise<number> => {
      let calls = 0
      while ((await limits.admit(call, nowMs)).admitted) calls++
      return calls
    }
    return { limits, admitted, setCount: (processes: number) => void (count = processes) }
  }

  test('the amount divided by the number of live processes, and at least 1', async () => {
    const { admitted, setCount } = openLimits([row(1, { ...requests(10), per: ['key'] })])
    setCount(3)
    expect(await admitted(subject({ keyId: 1 }), 1_000)).toBe(3)
    setCount(100)
    expect(await admitted(subject({ keyId: 2 }), 1_000)).toBe(1)
    setCount(1)
    expect(await admitted(subject({ keyId: 3 }), 1_000)).toBe(10)
  })

  test('when the number changes, a limit that is used up stays so', async () => {
    const { admitted, setCount } = openLimits([row(1, { ...requests(10), per: ['key'] })])
    expect(await admitted(subject(), 1_000)).toBe(10)
    setCount(2)
    expect(await admitted(subject(), 1_000)).toBe(0)
    setCount(1)
    expect(await admitted(subject(), 1_000)).toBe(0)
    expect(await admitted(subject(), 31_000)).toBe(5)
  })

  test('callers are told the whole limit, and answers come at once', () => {
    const { limits, setCount } = openLimits([row(1, { ...requests(10), per: ['key'] })])
    setCount(2)
    const admission = limits.admit(subject(), 1_000)
    expect(admission).not.toBeInstanceOf(Promise)
    expect(admission).toMatchObject({ admitted: true, quotas: [{ limit: 10, remaining: 8 }] })
  })
})

describe.if(hasRedis)('with Redis', () => {
  let redis: TestRedis
  beforeEach(async () => {
    redis = await startRedis()
    // The first correction takes longer, because Redis does not know the script: a sign of life could overtake it.
    const connection = await redis.open({ deadlineMs: 30_000, probeMs: 20 })
    await untilUp(connection)
    const counters = new LimitCounters({ connection, namespace: 'first', process: '0.1' })
    counters.freePlaces(['{weir}:first'])
    await counters.close()
  })
  afterEach(() => redis.stop())

  interface TestProcess {
    readonly limits: SharedLimits
    readonly counters: LimitCounters
    readonly connection: RedisConnection
  }

  /** Opens processes that share limits, each with a connection of its own. The local clock of all stands still. */
  async function openProcesses(
    count: number,
    rows: readonly LimitRow[],
    { debts = [], deadlineMs = 30_000, isFilled = true, onTrouble = noTrouble, firstLoad }: OpenOptions = {},
  ) {
    let loads = 0
    const loadDebts = async (): Promise<readonly LimitDebt[]> => {
      loads++
      if (loads === 1) await firstLoad
      return debts
    }
    if (isFilled) await redis.send('SET', '{weir}:test:born', '1')
    const open = async (_: unknown, at: number): Promise<TestProcess> => {
      const connection = await redis.open({ deadlineMs, probeMs: 20 })
      await untilUp(connection)
      const counters = new LimitCounters({ connection, namespace: 'test', process: `${at + 1}.1` })
      const parts = { processes: () => count, redis: counters, loadDebts, dateMs: () => 0, onTrouble }
      const limits = new SharedLimits(parts)
      limits.setRules(rows)
      return { limits, counters, connection }
    }
    return { processes: await Promise.all(Array.from({ length: count }, open)), loads: () => loads }
  }

  interface OpenOptions {
    readonly debts?: readonly LimitDebt[]
    readonly deadlineMs?: number
    readonly isFilled?: boolean
    /** The first read of the saved use waits for it, and fails with it. */
    readonly firstLoad?: Promise<void>
    readonly onTrouble?: (fault: unknown) => void
  }

  const nowMs = 1_000
  const serverMs = async (): Promise<number> => {
    const [seconds, micros] = (await redis.send('TIME')) as [string, string]
    return Number(seconds) * 1_000 + Number(micros) / 1_000
  }

  const isFilling = async (): Promise<boolean> => {
    const mark = await redis.send('GET', '{weir}:test:filling')
    return mark !== null && mark !== 'filled'
  }

  /** Sends calls to each process in turn, and returns how many are admitted. */
  async function admitted(processes: readonly TestProcess[], call: LimitedCall, calls: number): Promise<number> {
    let count = 0
    for (let at = 0; at < calls; at++) {
      const { limits } = processes[at % processes.length]!
      if ((await limits.admit(call, nowMs)).admitted) count++
    }
    return count
  }

  test('a call is admitted and gives its place back, also if its rules change while Redis counts it', async () => {
    const both = [row(1, { ...requests(9), per: ['key'] }), row(2, { ...concurrency(1), per: ['key'] })]
    const { processes } = await openProcesses(1, both)
    const { limits } = processes[0]!
    const admission = limits.admit(subject(), nowMs)
    limits.setRules([])
    // Another call of the key takes the new rules into use, which have no place where the old ones were.
    expect((await limits.admit(subject(), nowMs)).admitted).toBe(true)
    leaseOf(await admission).release()
    await Promise.resolve() // places are given back a moment later
    limits.setRules(both)
    expect((await limits.admit(subject(), nowMs)).admitted).toBe(true)
  })

  test('four processes with 64 calls at a time admit no more than one process may', async () => {
    const { processes } = await openProcesses(4, [row(1, { ...requests(600), per: ['key'] })])
    const sinceMs = await serverMs()
    let count = 0
    const send = async ({ limits }: TestProcess): Promise<void> => {
      for (let at = 0; at < 8; at++) if ((await limits.admit(subject(), nowMs)).admitted) count++
    }
    await Promise.all(processes.flatMap(process => Array.from({ length: 64 }, () => send(process))))
    const tookMs = (await serverMs()) - sinceMs
    expect(count).toBeGreaterThanOrEqual(600)
    expect(count).toBeLessThanOrEqual(600 + (600 * tookMs) / 60_000)
  })

  test('the pipeline waits for the answer: a permit, or the refusal that one process would give', async () => {
    const { processes } = await openProcesses(2, [row(1, { ...requests(2), per: ['account'] })])
    const [one, other] = processes.map(({ limits }) => buildLimitRate({ limits, nowMs: () => nowMs }))
    const key = { keyId: 1, limitsKeyId: 1, accountId: 10, tier: 'pro', qpm: 100_000, hasOwnLimit: false }
    const caller = key as unknown as Caller
    const demand = { model: 'openai/gpt-x', tokens: 10 }
    expect(await one!(caller, demand)).toMatchObject({ caller, quotas: [{ limit: 2, remaining: 1 }] })
    const counted = { permit: await other!(caller, demand), demand }
    await other!(caller, { ...demand, model: 'openai/gpt-y', counted }) // no other limit counts the new name
    const refused = await Promise.resolve(one!(caller, demand)).catch((fault: unknown) => fault)
    expect(refused).toBeInstanceOf(Refusal)
    expect(refused).toMatchObject({ code: 'qpm_exceeded', extras: { quotas: [{ limit: 2, remaining: 0 }] } })
  })

  test('a key that is refused by one process is soon refused by it unread, and others are not', async () => {
    const { processes } = await openProcesses(2, [])
    const [one, other] = processes as [TestProcess, TestProcess]
    const call = subject({ qpm: 2 })
    expect(await admitted([other], call, 2)).toBe(2)
    expect(one.limits.refusalOfKey(call, nowMs)).toBeUndefined()
    expect(await admitted([one], call, 1)).toBe(0)
    expect(one.limits.refusalOfKey(call, nowMs + 500)).toMatchObject({ admitted: false, by: { limit: 2 } })
    expect(one.limits.refusalOfKey({ ...call, qpm: 3 }, nowMs + 500)).toBeUndefined() // its limit was raised
    expect(await admitted([one], call, 1)).toBe(0)
    expect(one.limits.refusalOfKey(call, nowMs + 1_000)).toBeUndefined() // this call is read, and asks Redis again
  })

  for (const [name, stop, start] of [
    ['is killed and comes back empty', () => redis.kill(), () => redis.start()],
    ['does not answer for a while', async () => redis.signal('SIGSTOP'), async () => redis.signal('SIGCONT')],
  ] as const) {
    test(`a Redis that ${name} costs at most one burst at each end`, async () => {
      // On a busy machine also a Redis that runs may be late, when it is filled. The next call tries again.
      const options = { deadlineMs: 100, onTrouble: () => {} }
      const { processes } = await openProcesses(2, [row(1, { ...requests(100), per: ['key'] })], options)
      const sinceMs = await serverMs()
      expect(await admitted(processes, subject(), 60)).toBe(60)
      await stop()
      // Each process has used 30 of its share of 50. Three calls of each may wait for their deadline.
      expect(await admitted(processes, subject(), 200)).toBe(40)
      for (const { connection } of processes) expect(connection.isUp).toBe(false)
      await start()
      while (processes.some(({ connection }) => !connection.isUp)) await Bun.sleep(5)
      const count = await admitted(processes, subject(), 400)
      const tookMs = (await serverMs()) - sinceMs
      expect(count).toBeLessThanOrEqual(100 + (100 * tookMs) / 60_000)
    })
  }

  test('an empty Redis gets the saved use of day limits once, whichever process is first', async () => {
    const rows = [
      row(7, { ...requests(10, 'day'), per: ['key'] }),
      row(8, { ...requests(20, 'day'), per: ['account'] }),
    ]
    // Half of the first limit is refilled in half a day.
    const debts = [{ name: '7 1', paidMs: 43_200_000, notedMs: 0 }]
    const { processes, loads } = await openProcesses(3, rows, { debts, isFilled: false })
    const first = await Promise.all(processes.map(({ limits }) => limits.admit(subject(), nowMs)))
    expect(first.every(({ admitted: isAdmitted }) => isAdmitted)).toBe(true) // each process counts for itself meanwhile
    while ((await redis.send('EXISTS', '{weir}:test:born')) === 0) await Bun.sleep(1)
    expect(loads()).toBe(1)
    expect(await admitted(processes, subject(), 20)).toBe(5)
    expect(await admitted(processes, subject({ keyId: 2 }), 20)).toBe(10)
  })

  test('a Redis that comes back with an old snapshot gets the saved use of day limits', async () => {
    const debts: LimitDebt[] = []
    const { processes, loads } = await openProcesses(2, [row(7, { ...requests(10, 'day'), per: ['key'] })], { debts })
    const other = subject({ keyId: 2 })
    expect(await admitted(processes, other, 1)).toBe(1)
    while (loads() === 0 || (await isFilling())) await Bun.sleep(1)
    await redis.send('DEL', '{weir}:test:filling')
    await redis.send('SAVE')
    expect(await admitted(processes, subject(), 20)).toBe(10)
    debts.push({ name: '7 1', paidMs: 86_400_000, notedMs: 0 })
    await redis.kill()
    while (processes.some(({ connection }) => connection.isUp)) await Bun.sleep(5)
    await redis.start()
    while (processes.some(({ connection }) => !connection.isUp)) await Bun.sleep(5)
    expect(await redis.send('EXISTS', '{weir}:test:born')).toBe(1)
    expect(await admitted(processes, other, 1)).toBe(1)
    while ((await redis.send('EXISTS', '{weir}:test:requests-day:7 1')) === 0) await Bun.sleep(5)
    expect(await admitted(processes, subject(), 20)).toBe(0)
  })

  test('the saved use is given to Redis although the first process that does it fails', async () => {
    const debts = [{ name: '7 1', paidMs: 86_400_000, notedMs: 0 }]
    const rows = [row(7, { ...requests(10_000, 'day'), per: ['key'] })]
    const first = Promise.withResolvers<void>()
    const onTrouble = (): void => {}
    const { processes, loads } = await openProcesses(2, rows, { debts, onTrouble, firstLoad: first.promise })
    const [one, two] = processes as [TestProcess, TestProcess]
    const other = subject({ keyId: 2 })
    await one.limits.admit(other, nowMs)
    while (loads() === 0) await Bun.sleep(1)
    await two.limits.admit(other, nowMs) // leaves it to the first one
    first.reject(new Error('the database is away'))
    while ((await redis.send('EXISTS', '{weir}:test:requests-day:7 1')) === 0) {
      await two.limits.admit(other, nowMs)
      await Bun.sleep(20)
    }
    expect(await admitted(processes, subject(), 2)).toBe(0)
    // The first one finds that it was done.
    while (loads() < 2) await Bun.sleep(1)
  })

  test('each process adds what it has used of day limits to what is saved, as much as Redis has counted', async () => {
    const { processes } = await openProcesses(3, [row(7, { ...tokens(1_000, 'day'), per: ['key'] })])
    const [one, other] = processes as [TestProcess, TestProcess]
    const lease = leaseOf(await one.limits.admit(subject({ tokens: 400 }), nowMs)) // more than its share
    await other.limits.admit(subject({ tokens: 100 }), nowMs)
    const saved = ({ limits }: TestProcess): readonly LimitDebt[] => limits.takeDayUsage(nowMs, 5_000)
    const debt = (used: number): LimitDebt => {
      return { name: '7 1', paidMs: 5_000 + (used / 1_000) * 86_400_000, notedMs: 5_000, isIncrease: true }
    }
    const shareOfOne = 333
    expect([saved(one), saved(other)]).toEqual([[debt(shareOfOne)], [debt(100)]])
    expect([saved(one), saved(other)]).toEqual([[], []])
    lease.correct(450, nowMs)
    expect(saved(one)).toEqual([debt(450 - shareOfOne)])
  })

  describe('concurrent calls', () => {
    const rows = [row(1, { ...concurrency(5), per: ['account'] })]
    const open = async ({ limits }: TestProcess): Promise<LimitLease | undefined> => {
      const admission = await limits.admit(subject(), nowMs)
      return admission.admitted ? admission.lease : undefined
    }

    test('are counted together, and freed by the end of a call', async () => {
      const { processes } = await openProcesses(2, rows)
      const [one, other] = processes as [TestProcess, TestProcess]
      const leases = await Promise.all([one, other, one, other, one].map(open))
      expect(leases.includes(undefined)).toBe(false)
      expect([await open(one), await open(other)]).toEqual([undefined, undefined])
      leases[1]!.release()
      leases[1]!.release() // only the first counts
      await other.counters.renew()
      expect(await open(one)).toBeDefined()
      expect([await open(one), await open(other)]).toEqual([undefined, undefined])
    })

    test('are known again after Redis has lost all data', async () => {
      const { processes } = await openProcesses(2, rows)
      const [one, other] = processes as [TestProcess, TestProcess]
      await Promise.all([one, one, other].map(open))
      // The first calls give Redis the saved use. That must have ended, so that it does not happen after the loss.
      while (await isFilling()) await Bun.sleep(1)
      await redis.send('FLUSHALL')
      await open(one) // counted by the process itself, which has 2 of its share of 2
      while ((await redis.send('EXISTS', '{weir}:test:born')) === 0) {
        leaseOf(await one.limits.admit(subject({ accountId: 9 }), nowMs)).release()
        await Bun.sleep(1)
      }
      await Promise.all(processes.map(({ counters }) => counters.renew()))
      const more = [await open(other), await open(one), await open(other), await open(one)]
      expect(more.filter(lease => lease !== undefined).length).toBe(2)
    })

    test('that began while Redis was away count when it is back', async () => {
      const { processes } = await openProcesses(2, rows)
      const [one, other] = processes as [TestProcess, TestProcess]
      await redis.kill()
      while (one.connection.isUp || other.connection.isUp) await Bun.sleep(1)
      const away = [await open(one), await open(one), await open(one), await open(other)]
      expect(away.map(lease => lease !== undefined)).toEqual([true, true, false, true])
      await redis.start()
      await redis.send('SET', '{weir}:test:born', '1')
      while (!one.connection.isUp || !other.connection.isUp) await Bun.sleep(1)
      await Promise.all(processes.map(({ counters }) => counters.renew()))
      const more = [await open(other), await open(one), await open(other)]
      expect(more.map(lease => lease !== undefined)).toEqual([true, true, false])
      for (const lease of [...away, ...more]) lease?.release()
      await Promise.all(processes.map(({ counters }) => counters.renew()))
      expect(await redis.send('KEYS', '*:concurrency-now:*')).toEqual([])
    })
  })
})
