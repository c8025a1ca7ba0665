// The gate: levels for given readings, shares compared with a fair division, and leases that never
// leak.

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

function openGate(parts: Partial<GateParts> = {}): Gate {
  return new Gate({
    callsMax: 100,
    nowMs: () => performance.now(),
    timerDelayMs: () => 0,
    memoryShare: () => 0.1,
    ledgerWaitMs: () => 0,
    onLevel() {},
    freeMemory() {},
    ...parts,
  })
}

/** How many of the calls of an account are admitted. */
function crowd(gate: Gate, accountId: number, { calls = 200, tier = 'pro' } = {}): readonly GateLease[] {
  return Array.from({ length: calls }, () => gate.admit({ accountId, tier })).filter(one => one instanceof GateLease)
}

describe('shares', () => {
  test('a single account may take all but the last eighth', () => {
    const gate = openGate()
    expect(crowd(gate, 1).length).toBe(88)
    expect(gate.refusalCounts).toMatchObject({ share: 112 })
    gate.close()
  })

  test('another account is then admitted, and gets its share as calls end', () => {
    const gate = openGate()
    const noisy = [...crowd(gate, 1)]
    const other = [...crowd(gate, 2)]
    expect(other.length).toBe(12)
    for (let round = 0; round < 300; round++) {
      noisy.shift()?.release()
      other.shift()?.release()
      noisy.push(...crowd(gate, 1, { calls: 5 }))
      other.push(...crowd(gate, 2, { calls: 5 }))
    }
    expect(other.length).toBeGreaterThanOrEqual(33)
    expect(noisy.length).toBeLessThanOrEqual(60)
    expect(noisy.length + other.length).toBeGreaterThanOrEqual(86)
    gate.close()
  })

  test('free slots are not reserved: a small account does not halve a large one', () => {
    const gate = openGate()
    crowd(gate, 2, { calls: 1 })
    expect(crowd(gate, 1).length).toBe(87)
    gate.close()
  })

  test('each account may have some calls, however many accounts there are', () => {
    const gate = openGate({ callsMax: 10_000 })
    for (let accountId = 1; accountId <= 8_750; accountId++) crowd(gate, accountId, { calls: 1 })
    expect(crowd(gate, 7).length).toBe(7)
    gate.close()
  })

  test('no account exceeds the bound, and the free tier does not get the last eighth', () => {
    const gate = openGate()
    for (let accountId = 1; accountId <= 200; accountId++) crowd(gate, accountId, { calls: 1, tier: 'free' })
    expect([gate.activeCalls, gate.refusalCounts.free_tier]).toEqual([88, 112])
    for (let accountId = 201; accountId <= 400; accountId++) crowd(gate, accountId, { calls: 1 })
    expect([gate.activeCalls, gate.refusalCounts.full]).toEqual([100, 188])
    gate.close()
  })

  test('refusals have different retry times', () => {
    const gate = openGate({ callsMax: 1 })
    crowd(gate, 1, { calls: 1 })
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
        const had: { accountId: number; lease: GateLease; isOver: boolean }[] = []
        for (const [accountId, comes, at] of steps) {
          const entered = comes ? gate.admit({ accountId, tier: 'pro' }) : undefined
          if (entered instanceof GateLease) had.push({ accountId, lease: entered, isOver: false })
          const ending = comes ? undefined : had[at % Math.max(1, had.length)]
          ending?.lease.release()
          if (ending !== undefined) ending.isOver = true
          expect(gate.activeCalls).toBe(had.filter(({ isOver }) => !isOver).length)
          expect(gate.activeCalls).toBeLessThanOrEqual(40)
        }
        for (const { lease } of had) lease.release()
        expect(gate.activeCalls).toBe(0)
        // Earlier calls have no effect.
        expect(crowd(gate, 9).length).toBe(35)
        gate.close()
      }),
      { numRuns: 50 },
    )
  })
})

describe('levels', () => {
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

  test.each(cases)('%j is %d', (readings, level) => {
    const pressure = new OverloadMeter()
    for (let at = 0; at < 50; at++) pressure.addDelay(readings.lateMs ?? 0, at * 20)
    expect(pressure.measure({ ...calm, ...readings }, 1_000).level).toBe(level)
  })

  test('one late tick is no overload', () => {
    const pressure = new OverloadMeter()
    for (let at = 0; at < 200; at++) pressure.addDelay(0, at * 20)
    pressure.addDelay(3_000, 7_000)
    expect(pressure.measure(calm, 7_000).level).toBe(0)
    const fresh = new OverloadMeter()
    fresh.addDelay(45_000, 45_000) // a process that was stopped for a while
    expect(fresh.measure(calm, 45_000).level).toBe(0)
  })

  test('rises immediately, and falls step by step after a while well below', () => {
    const pressure = new OverloadMeter()
    const at = (memory: number, nowMs: number): OverloadLevel => pressure.measure({ ...calm, memory }, nowMs).level
    expect([at(0.95, 0), at(0.93, 10_000), at(0.86, 20_000)]).toEqual([3, 3, 3])
    expect([at(0.84, 30_000), at(0.84, 30_999), at(0.84, 31_000)]).toEqual([3, 3, 2])
    expect([at(0.84, 60_000), at(0.75, 60_250)]).toEqual([2, 2])
    expect([at(0.7, 70_000), at(0.7, 70_500), at(0.7, 71_000)]).toEqual([1, 1, 0])
  })

  test('does not flap at a threshold', () => {
    const pressure = new OverloadMeter()
    let changes = 0
    let last = 0
    for (let at = 0; at < 4_000; at++) {
      const { level } = pressure.measure({ ...calm, memory: 0.88 + (at % 2 === 0 ? 0.01 : -0.01) }, at * 250)
      if (level !== last) changes++
      last = level
    }
    expect(changes).toBe(1)
  })

  test('each level refuses the right calls', async () => {
    const seen: OverloadState[] = []
    let [memory, ledgerMs] = [0.1, 0]
    let relieved = 0
    const gate = openGate({
      memoryShare: () => memory,
      ledgerWaitMs: () => ledgerMs,
      onLevel: pressed => void seen.push(pressed),
      freeMemory: () => void relieved++,
    })
    const leases = crowd(gate, 1, { calls: 20 })
    const pressed = async (share: number, level: OverloadLevel): Promise<void> => {
      memory = share
      while (gate.level !== level) await Bun.sleep(5)
    }
    const welcome = (accountId: number, tier = 'pro'): boolean => {
      const entered = gate.admit({ accountId, tier })
      if (entered instanceof GateLease) entered.release()
      return entered instanceof GateLease
    }
    await pressed(0.8, 1)
    expect([welcome(1), welcome(2), welcome(3, 'free'), gate.isClosed, relieved]).toEqual([true, true, true, false, 1])
    await pressed(0.9, 2)
    // The calls that were active when the level rose are all that is shared.
    expect([welcome(1), welcome(2), welcome(3, 'free'), gate.isClosed]).toEqual([false, true, false, false])
    leases[0]!.release()
    expect(welcome(1)).toBe(true)
    await pressed(0.95, 3)
    expect([welcome(1), welcome(2), welcome(3, 'free'), gate.isClosed]).toEqual([false, false, false, true])
    expect(seen.map(({ level }) => level)).toEqual([1, 2, 3])
    await pressed(0.1, 0)
    ledgerMs = 1_001
    expect([welcome(2), gate.level]).toEqual([false, 3])
    ledgerMs = 0
    expect(welcome(2)).toBe(true)
    gate.close()
  })
})

describe('the pace', () => {
  /** A simulated processor with a queue, a number of calls a millisecond, and accounts that send calls. */
  function simulate(asks: Readonly<Record<string, number>>, { servesPerMs = 5, seconds = 60 } = {}) {
    const pace = new Pace()
    const accounts = Object.entries(asks).map(([name, perMs]) => ({
      name,
      perMs,
      paced: { tick: -1, started: 0 },
      owed: 0,
      asked: 0,
      begun: 0,
    }))
    let [queue, nowMs, worstMs, momentMs] = [0, 0, 0, 20]
    while (nowMs < seconds * 1_000) {
      nowMs += momentMs
      const ended = Math.min(queue, Math.floor(servesPerMs * momentMs))
      for (let left = ended; left > 0; left--) pace.end()
      queue -= ended
      const lateMs = queue / servesPerMs
      momentMs = 20 + Math.min(lateMs, 200)
      pace.beginTick(lateMs, nowMs)
      if (nowMs > 20_000) worstMs = Math.max(worstMs, lateMs)
      for (const account of accounts) {
        account.owed += account.perMs * momentMs
        for (; account.owed >= 1; account.owed--) {
          if (nowMs > 20_000) account.asked++
          if (!pace.mayStart(account.paced, accounts.length)) continue
          pace.start(account.paced)
          queue++
          if (nowMs > 20_000) account.begun++
        }
      }
    }
    const measuredMs = nowMs - 20_000
    const share = (name: string): number => {
      const { asked, begun } = accounts.find(account => account.name === name)!
      return begun / asked
    }
    const begunPerMs = accounts.reduce((sum, { begun }) => sum + begun, 0) / measuredMs
    return { pace, worstMs, begunPerMs, share }
  }

  test('is not limited while the processor keeps up', () => {
    const { pace, share } = simulate({ a: 3, b: 1 })
    expect([pace.perSecond, share('a'), share('b')]).toEqual([undefined, 1, 1])
  })

  test('at five times the capacity nearly the capacity is served, and the queue stays short', () => {
    const { worstMs, begunPerMs } = simulate({ a: 25 })
    expect(begunPerMs).toBeGreaterThan(4.25)
    expect(begunPerMs).toBeLessThanOrEqual(5.05)
    expect(worstMs).toBeLessThan(250)
  })

  test('an account with few calls is served beside one with very many', () => {
    const { share } = simulate({ noisy: 24, victim: 1 })
    expect(share('victim')).toBeGreaterThan(0.99)
    expect(share('noisy')).toBeLessThan(0.25)
  })

  test('ends when nobody was refused for a while', () => {
    const pace = new Pace()
    for (let at = 1; at <= 100; at++) pace.beginTick(200, at * 220)
    expect(pace.perSecond).toBeDefined()
    for (let at = 1; at <= 200; at++) pace.beginTick(0, 22_000 + at * 20)
    expect(pace.perSecond).toBeUndefined()
  })
})

test('a percentile needs enough recent samples', () => {
  const percentile = new WindowPercentile({ share: 0.9, windowMs: 1_000, samplesMin: 3 })
  percentile.add(1_000, 0)
  expect(percentile.read(0)).toBe(0)
  for (let at = 1; at <= 10; at++) percentile.add(at, 1_000 + at)
  expect(percentile.read(1_010)).toBe(10)
  for (let at = 0; at < 2_000; at++) percentile.add(at % 100, 2_000 + at / 10)
  expect(percentile.read(2_200)).toBeCloseTo(90, -1)
  expect(percentile.read(9_999)).toBe(0)
})
