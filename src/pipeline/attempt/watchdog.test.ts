// The watchdog reports silence of an upstream in the middle of its answer; heartbeats are sent to the caller meanwhile.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Deadlines } from '../../base/deadlines.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import { newCallParts } from '../exchange.ts'
import { heartbeat } from '../reply/stream-reply.ts'
import { Watchdog } from './watchdog.ts'

let nowMs: number
let reports: number[]
let watchdog: Watchdog
let deadlines: Deadlines

beforeEach(() => {
  nowMs = 0
  reports = []
  deadlines = new Deadlines(() => nowMs)
  const exchange = {
    ...newCallParts(),
    lifetime: { stop: new Stop<StopReason>(), callerGone: new Stop<StopReason>() },
  } as unknown as Exchange
  watchdog = new Watchdog(exchange, deadlines, 120_000)
  watchdog.expect(60_000)
  watchdog.onSilence(10_000, () => void reports.push(nowMs))
})
afterEach(() => watchdog.end())

/** Advances the clock second by second. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    nowMs += 1_000
    deadlines.fireDue()
  }
}

test('silence is reported as long as it lasts, counted from the last sign of life', async () => {
  await pass(5)
  watchdog.alive()
  await pass(9)
  expect(reports).toEqual([])
  await pass(1)
  expect(reports).toEqual([15_000])
  await pass(20)
  expect(reports).toEqual([15_000, 25_000, 35_000])
  watchdog.alive()
  await pass(9)
  expect(reports).toHaveLength(3)
})

test('a stream that continues is never reported as silent', async () => {
  for (let piece = 0; piece < 50; piece++) {
    await pass(3)
    watchdog.alive()
  }
  expect(reports).toEqual([])
})

test('while the caller has no room, the upstream is not expected to send and no silence is reported', async () => {
  watchdog.pause()
  await pass(100)
  expect([reports, watchdog.isLate]).toEqual([[], false])
  watchdog.alive()
  await pass(10)
  expect(reports).toHaveLength(1)
})

test('a report of silence is no sign of life: the upstream still times out', async () => {
  await pass(60)
  expect(watchdog.isLate).toBe(true)
  expect(reports).toEqual([10_000, 20_000, 30_000, 40_000, 50_000])
  await pass(60)
  expect(reports).toHaveLength(5)
})

test.each([
  ['the end of the reports', () => watchdog.stopReports()],
  ['the end of the watch', () => watchdog.end()],
  ['an abort', () => watchdog.abort()],
] as const)('after %s no silence is reported, and no timer remains', async (_name, stop) => {
  stop()
  await pass(30)
  expect(reports).toEqual([])
  watchdog.end()
  expect(deadlines.size).toBe(0)
})

test('a caller without room for one heartbeat gets no second one', async () => {
  const rooms = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const written: string[] = []
  const write = (bytes: Uint8Array | string): Promise<void> | undefined => {
    written.push(String(bytes))
    return rooms[written.length - 1]?.promise
  }
  const beat = heartbeat({ write }, ': ')
  beat()
  beat()
  expect(written).toHaveLength(1)
  rooms[0]!.resolve()
  await rooms[0]!.promise
  beat()
  expect(written).toHaveLength(2)
  rooms[1]!.reject(new Error('the caller has disconnected'))
  await rooms[1]!.promise.catch(() => {})
  beat()
  expect(written).toHaveLength(2)
})
