// The order of waiting calls, and that no state is left; compared with a simple model.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bounds } from '../base/bounds.ts'
import { Deadlines } from '../base/deadlines.ts'
import { Stop } from '../base/stop.ts'
import type { WaitResult } from './wait-queue.ts'
import { WaitQueues } from './wait-queue.ts'

function openLines() {
  let nowMs = 0
  const deadlines = new Deadlines(() => nowMs)
  const lines = new WaitQueues(deadlines)
  const seen: (readonly [string, WaitResult | object])[] = []
  const join = (name: string, accountId: number, { withinMs = 5_000, again = false, group = 'g' } = {}) => {
    const stop = new Stop<object>()
    lines.wait(group, accountId, { stop, withinMs, atFront: again }).then(
      waited => seen.push([name, waited]),
      reason => seen.push([name, reason as object]),
    )
    return stop
  }
  /** What happened since the last call. */
  const happened = async (): Promise<typeof seen> => {
    await Bun.sleep(0)
    return seen.splice(0)
  }
  return { lines, deadlines, join, happened, wait: (ms: number) => void (nowMs += ms) }
}

test('accounts take turns, and the calls of one account keep their order', async () => {
  const { lines, join, happened } = openLines()
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) join(name, name.charCodeAt(0))
  const order: string[] = []
  for (let turn = 0; turn < 8; turn++) {
    lines.wakeNext('g')
    order.push(...(await happened()).map(([name, waited]) => `${name} ${String(waited)}`))
  }
  expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'].map(name => `${name} turn`))
  expect([lines.hasWaiters('g'), lines.size('g')]).toEqual([false, 0])
})

test('a call that had a turn in vain goes to the front', async () => {
  const { lines, join, happened } = openLines()
  for (const name of ['a1', 'a2', 'b1']) join(name, name.charCodeAt(0))
  lines.wakeNext('g')
  expect(await happened()).toEqual([['a1', 'turn']])
  join('a1', 'a'.charCodeAt(0), { again: true })
  lines.wakeNext('g')
  expect(await happened()).toEqual([['a1', 'turn']])
  lines.wakeNext('g')
  expect(await happened()).toEqual([['b1', 'turn']])
})

test('queues are independent, and without a group one call in each is woken', async () => {
  const { lines, join, happened } = openLines()
  join('g1', 1)
  join('h1', 1, { group: 'h' })
  join('h2', 1, { group: 'h' })
  lines.wakeNext('nobody is here')
  expect(await happened()).toEqual([])
  lines.wakeNext()
  expect(await happened()).toEqual([
    ['g1', 'turn'],
    ['h1', 'turn'],
  ])
  expect([lines.hasWaiters('g'), lines.hasWaiters('h')]).toEqual([false, true])
})

describe('no call waits for ever', () => {
  test('a stopped call leaves immediately, and one that is already stopped does not wait', async () => {
    const { lines, join, happened, deadlines } = openLines()
    const gone = { gone: true }
    const stop = join('a1', 1)
    join('a2', 1)
    stop.stop(gone)
    expect(lines.size('g')).toBe(1)
    expect(await happened()).toEqual([['a1', gone]])
    expect(lines.wait('g', 1, { stop, withinMs: 1 })).rejects.toBe(gone)
    lines.wakeNext('g')
    expect(await happened()).toEqual([['a2', 'turn']])
    expect(deadlines.size).toBe(0)
  })

  test('no longer than its own limit and the general one', async () => {
    const { lines, join, happened, wait, deadlines } = openLines()
    join('short', 1, { withinMs: 100 })
    join('long', 1, { withinMs: Number.POSITIVE_INFINITY })
    const lateWithin = async (ms: number): Promise<unknown> => {
      wait(ms)
      await Bun.sleep(120) // the deadlines are looked at every 50 ms of real time
      return await happened()
    }
    expect(await lateWithin(101)).toEqual([['short', 'late']])
    expect(await lateWithin(bounds.queuedMsMax)).toEqual([['long', 'late']])
    expect([lines.size('g'), deadlines.size]).toEqual([0, 0])
  })
})

describe('a full queue', () => {
  const fill = (join: ReturnType<typeof openLines>['join'], accounts: number): void => {
    for (let at = 0; at < bounds.queuedCallsMax; at++) join(`${at % accounts}.${at}`, at % accounts)
  }

  test('refuses the account that fills it', async () => {
    const { lines, join, happened } = openLines()
    fill(join, 1)
    join('more', 0)
    expect(await happened()).toEqual([['more', 'full']])
    expect(lines.size('g')).toBe(bounds.queuedCallsMax)
  })

  test('makes room for another until both have the same', async () => {
    const { lines, join, happened } = openLines()
    fill(join, 1)
    for (let at = 0; at < bounds.queuedCallsMax; at++) join(`new.${at}`, 1)
    const turnedAway = (await happened()).map(([name, waited]) => `${name.split('.')[0]} ${String(waited)}`)
    const half = bounds.queuedCallsMax / 2
    expect(turnedAway.filter(name => name === '0 full').length).toBe(half)
    expect(turnedAway.filter(name => name === 'new full').length).toBe(half)
    expect(lines.size('g')).toBe(bounds.queuedCallsMax)
  })

  test('with one call of each account has no room', async () => {
    const { join, happened } = openLines()
    fill(join, bounds.queuedCallsMax)
    join('stranger', 1_000_000)
    expect(await happened()).toEqual([['stranger', 'full']])
  })
})

test('every call gets exactly one result, and no state is left', async () => {
  const moves = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('join' as const), account: fc.nat(5), again: fc.boolean() }),
      fc.record({ kind: fc.constant('serve' as const) }),
      fc.record({ kind: fc.constant('leave' as const), at: fc.nat(1_000) }),
    ),
    { maxLength: 300 },
  )
  await fc.assert(
    fc.asyncProperty(moves, async steps => {
      const { lines, deadlines, join, happened } = openLines()
      const stops: Stop<object>[] = []
      for (const step of steps) {
        if (step.kind === 'join') stops.push(join(String(stops.length), step.account, { again: step.again }))
        else if (step.kind === 'serve') lines.wakeNext('g')
        else stops[step.at % Math.max(1, stops.length)]?.stop({})
      }
      while (lines.hasWaiters('g')) lines.wakeNext('g')
      const names = (await happened()).map(([name]) => Number(name))
      expect(names.toSorted((one, other) => one - other)).toEqual(stops.map((_stop, at) => at))
      expect([lines.size('g'), deadlines.size]).toEqual([0, 0])
    }),
    { numRuns: 60 },
  )
})
