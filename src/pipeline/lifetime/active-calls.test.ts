// A call that takes too long is stopped; if it still does not end, its gate lease is released.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import { ActiveCalls } from './active-calls.ts'

test('a call that does not end does not keep its gate lease for ever', () => {
  let nowMs = 0
  const activeCalls = new ActiveCalls(() => nowMs)
  let released = 0
  const stop = new Stop<StopReason>()
  const gateLease = { release: () => void released++ }
  const exchange = { startedMs: 0, attempt: {}, lifetime: { stop, gateLease } } as unknown as Exchange
  const node = activeCalls.add(exchange)
  const checkAt = (ms: number): readonly [string | undefined, number] => {
    nowMs = ms
    activeCalls.check()
    return [stop.reason?.outcome, released]
  }
  expect(checkAt(bounds.callMsMax - 1)).toEqual([undefined, 0])
  expect(checkAt(bounds.callMsMax)).toEqual(['too_long', 0])
  expect(checkAt(bounds.callMsMax + 60_000)).toEqual(['too_long', 1])
  activeCalls.remove(node)
  activeCalls.check()
})

test('whoever ends all calls does not wait for calls that begin later', async () => {
  const activeCalls = new ActiveCalls(() => 0)
  const begin = () => {
    const exchange = { startedMs: 0, attempt: {}, lifetime: { stop: new Stop<StopReason>() } } as unknown as Exchange
    return { exchange, node: activeCalls.add(exchange) }
  }
  const reason = { outcome: 'gateway_fault', refusal: new Refusal('storage_away', 'test') } as const
  await activeCalls.endAll(reason)
  const [first, second] = [begin(), begin()]
  let isOver = false
  const ended = activeCalls.endAll(reason).then(() => (isOver = true))
  const later = begin()
  expect([first, second, later].map(({ exchange }) => exchange.lifetime.stop.reason?.outcome)).toEqual([
    'gateway_fault',
    'gateway_fault',
    undefined,
  ])
  activeCalls.remove(first.node)
  await Promise.resolve()
  expect(isOver).toBe(false)
  activeCalls.remove(second.node)
  await ended
  expect(activeCalls.size).toBe(1)
  activeCalls.remove(later.node)
  activeCalls.check()
})
