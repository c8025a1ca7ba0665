// Tests the gate: overload levels for given readings, shares compared with a fair division, and leases that never leak.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Refusal } from '../base/errors.ts'
import type { GateParts } from './gate.ts'
import { Gate, GateLease } from './gate.ts'
import type { OverloadLevel, OverloadState } from './overload-meter.ts'
import { OverloadMeter } from './overload-meter.ts'
import { Pace } from './pace.ts'
import { WindowPercentile } from './percentile.ts'

const calm = { memory: 0.1, ledgerMs: 0 }

/** The gate reads the clock once a tick, so here each tick takes 20 ms, however long the machine pauses between two. */
function tickingClock(): () => number {
  let nowMs = 0
  return () => (nowMs += 20)
}

function openGate(parts: Partial<GateParts> = {}): Gate {
  return new Gate({
    callsMax: 100,
    nowMs: tickingClock(),
    timerDelayMs: () => 0,
    memoryShare: () => 0.1,
    ledgerWaitMs: () => 0,
    onLevel() {},
    freeMemory() {},
    ...parts,
  })
}

/** Sends many calls of an account and returns the leases of those that are admitted. */
function admitMany(gate: Gate, accountId: number, { calls = 200, tier = 'pro' } = {}): readonly GateLease[] {
  return Array.from({ length: calls }, () => gate.admit({ accountId, tier })).filter(
    admitted => admitted instanceof GateLease,
  )
}

describe('shares:', () => {
  test('a single account may take all but the last eighth', () => {
    const gate = openGate()
    expect(admitMany(gate, 1).length).toBe(88)
    expect(gate.refusalCounts).toMatchObject({ share: 112 })
    gate.close()
  })

  test('another account is then admitted, and gets its share as calls end', () => {
    const gate = openGate()
    const noisy = [...admitMany(gate, 1)]
    const other = [...admitMany(gate, 2)]
    expect(other.length).toBe(12)
    for (let round = 0; round < 300; round++) {
      noisy.shift()?.release()
      other.shift()?.release()
      noisy.push(...admitMany(gate, 1, { calls: 5 }))
      other.push(...admitMany(gate, 2, { calls: 5 }))
    }
    expect(other.length).toBeGreaterThanOrEqual(33)
    expect(noisy.length).toBeLessThanOrEqual(60)
    expect(noisy.length + other.length).toBeGreaterThanOrEqual(86)
    gate.close()
  })

  test('free slots are not reserved: a small account does not halve a large one', () => {
    const gate = openGate()
    admitMany(gate, 2, { calls: 1 })
    expect(admitMany(gate, 1).length).toBe(87)
    gate.close()
  })

  test('each account may have some calls, however many accounts there are', () => {
    const gate = openGate({ callsMax: 10_000 })
    for (let accountId = 1; accountId <= 8_750; accountId++) admitMany(gate, accountId, { calls: 1 })
    expect(admitMany(gate, 7).length).toBe(7)
    gate.close()
  })

  test('no account exceeds the bound, and the free tier does not get the last eighth', () => {
    const gate = openGate()
    for (let accountId = 1; accountId <= 200; accountId++) admitMany(gate, accountId, { calls: 1, tier: 'free' })
    expect([gate.activeCalls, gate.refusalCounts.free_tier]).toEqual([88, 112])
    for (let accountId = 201; accountId <= 400; accountId++) admitMany(gate, accountId, { calls: 1 })
    expect([gate.activeCalls, gate.refusalCounts.full]).toEqual([100, 188])
    gate.close()
  })

  test('refusals have different retry times', () => {
    const gate = openGate({ callsMax: 1 })
    admitMany(gate, 1, { calls: 1 })
    const refusals = Array.from({ length: 16 }, () => gate.admit({ accountId: 2, tier: 'pro' }) as Refusal)
    expect(refusals.every(({ code }) => code === 'overloaded')).toBe(true)
    const waits = refusals.map(({ extras }) => extras.retryAfterMs!)
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1_000)
    expect(new Set(waits).size).toBeGreaterThan(4)
    gate.close()
  })
})

describe('leases', () => {
  test('are released once, in any order and however often', () => {
    const moves = fc.array(fc.tuple(fc.nat(4), fc.boolean(), fc.nat(200)), { maxLength: 400 })
    fc.assert(
      fc.property(moves, steps => {
        const gate = openGate({ callsMax: 40 })
        const taken: { accountId: number; lease: GateLease; isReleased: boolean }[] = []
        for (const [accountId, isAdmission, index] of steps) {
          const admitted = isAdmission ? gate.admit({ accountId, tier: 'pro' }) : undefined
          if (admitted instanceof GateLease) taken.push({ accountId, lease: admitted, isReleased: false })
          const ending = isAdmission ? undefined : taken[index % Math.max(1, taken.length)]
          ending?.lease.release()
          if (ending !== undefined) ending.isReleased = true
          expect(gate.activeCalls).toBe(taken.filter(({ isReleased }) => !isReleased).length)
          expect(gate.activeCalls).toBeLessThanOrEqual(40)
        }
        for (const { lease } of taken) lease.release()
        expect(gate.activeCalls).toBe(0)
        // The earlier calls have no effect on the share of another account.
        expect(admitMany(gate, 9).length).toBe(35)
        gate.close()
      }),
      { numRuns: 50 },
    )
  })
})

describe('the overload level', () => {
  const cases: readonly (readonly [Partial<OverloadState>, OverloadLevel])[] = [
    [{}, 0],
    [{ memory: 0.79 }, 0],
    [{ memory: 0.8 }, 1],
    [{ memory: 0.88 }, 2],
    [{ memory: 0.94 }, 3],
    [{ memory: 1.5 }, 3],
    [{ ledgerMs: 249 }, 0],
    [{ ledgerMs: 250 }, 1],
    [{ ledgerMs: 500 }, 2],
    [{ ledgerMs: 5_000 }, 2],
    [{ lateMs: 99 }, 0],
    [{ lateMs: 100 }, 1],
    [{ lateMs: 250 }, 2],
    [{ lateMs: 5_000 }, 2],
    [{ memory: 0.8, ledgerMs: 600, lateMs: 120 }, 2],
  ]

  test.each(cases)('with the readings %j is %d', (readings, level) => {
    const meter = new OverloadMeter()
    for (let tick = 0; tick < 50; tick++) meter.addDelay(readings.lateMs ?? 0, tick * 20)
    expect(meter.measure({ ...calm, ...readings }, 1_000).level).toBe(level)
  })

  test('does not rise for one late tick', () => {
    const meter = new OverloadMeter()
    for (let tick = 0; tick < 200; tick++) meter.addDelay(0, tick * 20)
    meter.addDelay(3_000, 7_000)
    expect(meter.measure(calm, 7_000).level).toBe(0)
    const fresh = new OverloadMeter()
    fresh.addDelay(45_000, 45_000) // a process that was stopped for a while
    expect(fresh.measure(calm, 45_000).level).toBe(0)
  })

  test('rises immediately, and falls step by step after a while well below', () => {
    const meter = new OverloadMeter()
    const levelAt = (memory: number, nowMs: number): OverloadLevel => meter.measure({ ...calm, memory }, nowMs).level
    expect([levelAt(0.95, 0), levelAt(0.93, 10_000), levelAt(0.86, 20_000)]).toEqual([3, 3, 3])
    expect([levelAt(0.84, 30_000), levelAt(0.84, 30_999), levelAt(0.84, 31_000)]).toEqual([3, 3, 2])
    expect([levelAt(0.84, 60_000), levelAt(0.75, 60_250)]).toEqual([2, 2])
    expect([levelAt(0.7, 70_000), levelAt(0.7, 70_500), levelAt(0.7, 71_000)]).toEqual([1, 1, 0])
  })

  test('does not flap at a threshold', () => {
    const meter = new OverloadMeter()
    let changes = 0
    let last = 0
    for (let tick = 0; tick < 4_000; tick++) {
      const { level } = meter.measure({ ...calm, memory: 0.88 + (tick % 2 === 0 ? 0.01 : -0.01) }, tick * 250)
      if (level !== last) changes++
      last = level
    }
    expect(changes).toBe(1)
  })

  test('a late event loop refuses the free tier only when calls can be the reason', async () => {
    const gate = openGate({ timerDelayMs: () => 300 })
    const isFreeAdmitted = (): boolean => {
      const admitted = gate.admit({ accountId: 9, tier: 'free' })
      if (admitted instanceof GateLease) admitted.release()
      return admitted instanceof GateLease
    }
    const [first] = admitMany(gate, 1, { calls: 8 })
    while (gate.level !== 2) await Bun.sleep(5)
    expect(isFreeAdmitted()).toBe(false)
    first!.release()
    expect(isFreeAdmitted()).toBe(true)
    gate.close()
  })

  test('decides which calls are refused', async () => {
    const states: OverloadState[] = []
    let [memory, ledgerMs] = [0.1, 0]
    let [freed, shed] = [0, 0]
    const gate = openGate({
      memoryShare: () => memory,
      ledgerWaitMs: () => ledgerMs,
      onLevel: state => void states.push(state),
      freeMemory: () => void freed++,
      shedConnections: () => void shed++,
    })
    const leases = admitMany(gate, 1, { calls: 20 })
    const setMemory = async (share: number, level: OverloadLevel): Promise<void> => {
      memory = share
      while (gate.level !== level) await Bun.sleep(5)
    }
    const isAdmitted = (accountId: number, tier = 'pro'): boolean => {
      const admitted = gate.admit({ accountId, tier })
      if (admitted instanceof GateLease) admitted.release()
      return admitted instanceof GateLease
    }
    await setMemory(0.8, 1)
    expect([isAdmitted(1), isAdmitted(2), isAdmitted(3, 'free'), gate.isClosed, freed]).toEqual([
      true,
      true,
      true,
      false,
      1,
    ])
    await setMemory(0.9, 2)
    // Only as many slots are shared as there were active calls when the level rose.
    expect([isAdmitted(1), isAdmitted(2), isAdmitted(3, 'free'), gate.isClosed]).toEqual([false, true, false, false])
    leases[0]!.release()
    expect(isAdmitted(1)).toBe(true)
    await setMemory(0.95, 3)
    expect([isAdmitted(1), isAdmitted(2), isAdmitted(3, 'free'), gate.isClosed]).toEqual([false, false, false, true])
    expect(shed).toBeGreaterThan(1) // at each measurement, also soon after memory was freed
    expect(states.map(({ level }) => level)).toEqual([1, 2, 3])
    await setMemory(0.1, 0)
    ledgerMs = 1_001
    expect([isAdmitted(2), gate.level]).toEqual([false, 3])
    ledgerMs = 0
    expect(isAdmitted(2)).toBe(true)
    gate.close()
  })
})

describe('the pace of calls', () => {
  /** Simulates a processor with a queue that serves a number of calls per millisecond, and accounts that send calls. */
  function simulate(callsPerMs: Readonly<Record<string, number>>, { servesPerMs = 5, seconds = 60 } = {}) {
    const pace = new Pace()
    const accounts = Object.entries(callsPerMs).map(([name, perMs]) => ({
      name,
      perMs,
      paced: { tick: -1, started: 0 },
      due: 0,
      sent: 0,
      started: 0,
    }))
    let [queue, nowMs, worstMs, tickMs] = [0, 0, 0, 20]
    while (nowMs < seconds * 1_000) {
      nowMs += tickMs
      const ended = Math.min(queue, Math.floor(servesPerMs * tickMs))
      for (let remaining = ended; remaining > 0; remaining--) pace.end()
      queue -= ended
      const lateMs = queue / servesPerMs
      tickMs = 20 + Math.min(lateMs, 200)
      pace.beginTick(lateMs, nowMs)
      if (nowMs > 20_000) worstMs = Math.max(worstMs, lateMs)
      for (const account of accounts) {
        account.due += account.perMs * tickMs
        for (; account.due >= 1; account.due--) {
          if (nowMs > 20_000) account.sent++
          if (!pace.mayStart(account.paced, accounts.length)) continue
          pace.start(account.paced)
          queue++
          if (nowMs > 20_000) account.started++
        }
      }
    }
    const measuredMs = nowMs - 20_000
    const share = (name: string): number => {
      const { sent, started } = accounts.find(account => account.name === name)!
      return started / sent
    }
    const startedPerMs = accounts.reduce((sum, { started }) => sum + started, 0) / measuredMs
    return { pace, worstMs, startedPerMs, share }
  }

  test('is not limited while the processor keeps up', () => {
    const { pace, share } = simulate({ a: 3, b: 1 })
    expect([pace.perSecond, share('a'), share('b')]).toEqual([undefined, 1, 1])
  })

  test('is nearly the capacity at five times the capacity, and the queue stays short', () => {
    const { worstMs, startedPerMs } = simulate({ a: 25 })
    expect(startedPerMs).toBeGreaterThan(4.25)
    expect(startedPerMs).toBeLessThanOrEqual(5.05)
    expect(worstMs).toBeLessThan(250)
  })

  test('leaves room for an account with few calls beside one with very many', () => {
    const { share } = simulate({ noisy: 24, victim: 1 })
    expect(share('victim')).toBeGreaterThan(0.99)
    expect(share('noisy')).toBeLessThan(0.25)
  })

  test('is no longer limited when no call was refused for a while', () => {
    const pace = new Pace()
    for (let tick = 1; tick <= 100; tick++) pace.beginTick(200, tick * 220)
    expect(pace.perSecond).toBeDefined()
    for (let tick = 1; tick <= 200; tick++) pace.beginTick(0, 22_000 + tick * 20)
    expect(pace.perSecond).toBeUndefined()
  })
})

test('a percentile needs enough recent samples', () => {
  const percentile = new WindowPercentile({ share: 0.9, windowMs: 1_000, samplesMin: 3 })
  percentile.add(1_000, 0)
  expect(percentile.read(0)).toBe(0)
  for (let sample = 1; sample <= 10; sample++) percentile.add(sample, 1_000 + sample)
  expect(percentile.read(1_010)).toBe(10)
  for (let sample = 0; sample < 2_000; sample++) percentile.add(sample % 100, 2_000 + sample / 10)
  expect(percentile.read(2_200)).toBeCloseTo(90, -1)
  expect(percentile.read(9_999)).toBe(0)
})
