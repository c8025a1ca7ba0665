// Tests the order of waiting calls, and that no state is left.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bounds } from '../base/bounds.ts'
import { Deadlines } from '../base/deadlines.ts'
import { Stop } from '../base/stop.ts'
import type { WaitResult } from './wait-queue.ts'
import { WaitQueues } from './wait-queue.ts'

function openQueues() {
  let nowMs = 0
  const deadlines = new Deadlines(() => nowMs)
  const queues = new WaitQueues(deadlines)
  const results: (readonly [string, WaitResult | object])[] = []
  const join = (name: string, accountId: number, { withinMs = 5_000, atFront = false, group = 'g' } = {}) => {
    const stop = new Stop<object>()
    queues.wait(group, accountId, { stop, withinMs, atFront }).then(
      waited => results.push([name, waited]),
      reason => results.push([name, reason as object]),
    )
    return stop
  }
  /** The results of calls since this function was called before. */
  const newResults = async (): Promise<typeof results> => {
    await Bun.sleep(0)
    return results.splice(0)
  }
  return { queues, deadlines, join, newResults, wait: (ms: number) => void (nowMs += ms) }
}

test('accounts take turns, and the calls of one account keep their order', async () => {
  const { queues, join, newResults } = openQueues()
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) join(name, name.charCodeAt(0))
  const order: string[] = []
  for (let turn = 0; turn < 8; turn++) {
    queues.wakeNext('g')
    order.push(...(await newResults()).map(([name, waited]) => `${name} ${String(waited)}`))
  }
  expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'].map(name => `${name} turn`))
  expect([queues.hasWaiters('g'), queues.size('g')]).toEqual([false, 0])
})

test('a call that had its turn in vain goes to the front', async () => {
  const { queues, join, newResults } = openQueues()
  for (const name of ['a1', 'a2', 'b1']) join(name, name.charCodeAt(0))
  queues.wakeNext('g')
  expect(await newResults()).toEqual([['a1', 'turn']])
  join('a1', 'a'.charCodeAt(0), { atFront: true })
  queues.wakeNext('g')
  expect(await newResults()).toEqual([['a1', 'turn']])
  queues.wakeNext('g')
  expect(await newResults()).toEqual([['b1', 'turn']])
})

test('queues are independent, and without a group one call in each is woken', async () => {
  const { queues, join, newResults } = openQueues()
  join('g1', 1)
  join('h1', 1, { group: 'h' })
  join('h2', 1, { group: 'h' })
  queues.wakeNext('empty queue')
  expect(await newResults()).toEqual([])
  queues.wakeNext()
  expect(await newResults()).toEqual([
    ['g1', 'turn'],
    ['h1', 'turn'],
  ])
  expect([queues.hasWaiters('g'), queues.hasWaiters('h')]).toEqual([false, true])
})

describe('no call waits for ever:', () => {
  test('a stopped call leaves immediately, and one that is already stopped does not wait', async () => {
    const { queues, join, newResults, deadlines } = openQueues()
    const gone = { gone: true }
    const stop = join('a1', 1)
    join('a2', 1)
    stop.stop(gone)
    expect(queues.size('g')).toBe(1)
    expect(await newResults()).toEqual([['a1', gone]])
    await expect(queues.wait('g', 1, { stop, withinMs: 1 })).rejects.toBe(gone)
    queues.wakeNext('g')
    expect(await newResults()).toEqual([['a2', 'turn']])
    expect(deadlines.size).toBe(0)
  })

  test('a call waits no longer than its own limit and the general one', async () => {
    const { queues, join, newResults, wait, deadlines } = openQueues()
    join('short', 1, { withinMs: 100 })
    join('long', 1, { withinMs: Number.POSITIVE_INFINITY })
    const resultsAfter = async (ms: number): Promise<unknown> => {
      wait(ms)
      deadlines.fireDue()
      return await newResults()
    }
    expect(await resultsAfter(101)).toEqual([['short', 'late']])
    expect(await resultsAfter(bounds.queuedMsMax)).toEqual([['long', 'late']])
    expect([queues.size('g'), deadlines.size]).toEqual([0, 0])
  })
})

describe('a full queue', () => {
  const fill = (join: ReturnType<typeof openQueues>['join'], accounts: number): void => {
    for (let index = 0; index < bounds.queuedCallsMax; index++) join(`${index % accounts}.${index}`, index % accounts)
  }

  test('refuses the account that fills it', async () => {
    const { queues, join, newResults } = openQueues()
    fill(join, 1)
    join('more', 0)
    expect(await newResults()).toEqual([['more', 'full']])
    expect(queues.size('g')).toBe(bounds.queuedCallsMax)
  })

  test('makes room for another account until both have the same number of calls', async () => {
    const { queues, join, newResults } = openQueues()
    fill(join, 1)
    for (let index = 0; index < bounds.queuedCallsMax; index++) join(`new.${index}`, 1)
    const refused = (await newResults()).map(([name, waited]) => `${name.split('.')[0]} ${String(waited)}`)
    const half = bounds.queuedCallsMax / 2
    expect(refused.filter(name => name === '0 full').length).toBe(half)
    expect(refused.filter(name => name === 'new full').length).toBe(half)
    expect(queues.size('g')).toBe(bounds.queuedCallsMax)
  })

  test('with one call of each account has no room', async () => {
    const { join, newResults } = openQueues()
    fill(join, bounds.queuedCallsMax)
    join('visitor', 1_000_000)
    expect(await newResults()).toEqual([['visitor', 'full']])
  })
})

test('every call gets exactly one result, and no state is left', async () => {
  const moves = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('join' as const), account: fc.nat(5), atFront: fc.boolean() }),
      fc.record({ kind: fc.constant('serve' as const) }),
      fc.record({ kind: fc.constant('leave' as const), at: fc.nat(1_000) }),
    ),
    { maxLength: 300 },
  )
  await fc.assert(
    fc.asyncProperty(moves, async steps => {
      const { queues, deadlines, join, newResults } = openQueues()
      const stops: Stop<object>[] = []
      for (const step of steps) {
        if (step.kind === 'join') stops.push(join(String(stops.length), step.account, { atFront: step.atFront }))
        else if (step.kind === 'serve') queues.wakeNext('g')
        else stops[step.at % Math.max(1, stops.length)]?.stop({})
      }
      while (queues.hasWaiters('g')) queues.wakeNext('g')
      const names = (await newResults()).map(([name]) => Number(name))
      expect(names.toSorted((one, other) => one - other)).toEqual(stops.map((_stop, at) => at))
      expect([queues.size('g'), deadlines.size]).toEqual([0, 0])
    }),
    { numRuns: 60 },
  )
})
