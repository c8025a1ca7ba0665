// A call that takes too long is stopped; if it still does not end, its gate lease is released.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
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
