// A call that takes too long is stopped; if it still does not end, its gate lease is released.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import { ActiveCalls } from './active-calls.ts'

test('a call that does not end does not keep its gate lease for ever', () => {
  let nowMs = 0
  const underWay = new ActiveCalls(() => nowMs)
  let released = 0
  const stop = new Stop<StopReason>()
  const gateLease = { release: () => void released++ }
  const exchange = { startedMs: 0, attempt: {}, lifetime: { stop, gateLease } } as unknown as Exchange
  const place = underWay.add(exchange)
  const at = (ms: number): readonly [string | undefined, number] => {
    nowMs = ms
    underWay.check()
    return [stop.reason?.outcome, released]
  }
  expect(at(bounds.callMsMax - 1)).toEqual([undefined, 0])
  expect(at(bounds.callMsMax)).toEqual(['too_long', 0])
  expect(at(bounds.callMsMax + 60_000)).toEqual(['too_long', 1])
  underWay.remove(place)
  underWay.check()
})
