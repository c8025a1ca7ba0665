// A caller that reads slowly slows its upstream down instead of filling the gateway's memory, and a caller that has
// stopped reading is disconnected, and pays.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { systemClock } from '../../src/base/clock.ts'
import { streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, end, gate, scripted, wait } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { memoryWithin, openCall, standstill, startHasty } from './caller.ts'
import { done, finish, piece, role, usageOnly } from './wire.ts'

const MIB = 1024 * 1024
const letters = 'x'.repeat(64 * 1024)

/** A stream of so many events of 64 KiB, written as they are taken. */
function longStream(events: number): Script {
  return scripted(function* long() {
    yield streamHead
    yield chunk(role())
    for (let left = events; left > 0; left--) yield chunk(piece(letters))
    yield chunk(finish() + usageOnly(3, 4) + done)
    yield end
  })
}

describe('a caller that stops reading', () => {
  let harness: Harness
  let key: string
  beforeAll(async () => {
    harness = await startHasty()
    key = await harness.key()
  })
  afterAll(() => harness.stop())

  test('stops its upstream, and gets everything when it reads on', async () => {
    const events = 2048 // 128 MiB
    const rssBefore = process.memoryUsage().rss
    harness.upstream.plan(longStream(events))
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ body }) => body.length > 0, 'the first bytes are here')
    caller.stopReading()
    const written = await standstill(await received)
    // What the kernel buffers for the two sockets, and hardly more: it is not the gateway's memory.
    expect(written).toBeLessThan(96 * MIB)
    await memoryWithin(rssBefore + 96 * MIB)
    // Other calls are not held up.
    expect((await openCall(harness, key, {}).whole()).status).toBe(200)
    caller.readOn()
    await caller.whole()
    const expected = role().length + events * piece(letters).length + finish().length + done.length
    expect(caller.text.replace(/: X-Pipeline[^\n]*\n\n/, '').length).toBe(expected)
    expect(caller.text).toEndWith(done)
    await harness.idle()
    expect(harness.recordCount()).toBe(2)
    expect(harness.records()[0]).toMatchObject({ outcome: 'completed', cost: 3 * 150 + 4 * 600 })
  })

  test('releases its upstream when it leaves', async () => {
    harness.upstream.plan(longStream(2048))
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ body }) => body.length > 0, 'the first bytes are here')
    caller.stopReading()
    const request = await received
    await standstill(request)
    caller.leave()
    await request.closed
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left', usage_source: 'estimated' })
  })
})

describe('a caller that makes no progress', () => {
  let harness: Harness
  let key: string
  /** Moves only where a test says so: a slow machine must look neither like a slow caller nor like a slow upstream. */
  let nowMs = systemClock.nowMs()
  const limitMs = bounds.betweenChunksMsMax
  beforeAll(async () => {
    harness = await startHasty({ world: { clock: { ...systemClock, nowMs: () => nowMs } } })
    key = await harness.key()
  })
  afterAll(() => harness.stop())

  test('is disconnected, and pays for what it was sent', async () => {
    harness.upstream.plan(longStream(2048))
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ body }) => body.length > 0, 'the first bytes are here')
    caller.stopReading()
    const request = await received
    try {
      await standstill(request)
      nowMs += limitMs
      await request.closed
      await harness.idle()
      expect(harness.openHolds()).toBe(0)
      const [record] = harness.records().slice(-1)
      expect(record).toMatchObject({ outcome: 'client_left', usage_source: 'estimated' })
      // More than a megabyte; it is counted up to the model's longest answer, which is what was held.
      expect(record!.output_tokens).toBe(16_384)
    } finally {
      caller.leave()
    }
  })

  test('does not keep the gateway from stopping', async () => {
    const ownHarness = await startHasty()
    const ownKey = await ownHarness.key()
    ownHarness.upstream.plan(longStream(2048))
    const received = ownHarness.upstream.nextRequest()
    const caller = openCall(ownHarness, ownKey, { stream: true })
    await caller.until(({ body }) => body.length > 0, 'the first bytes are here')
    caller.stopReading()
    await standstill(await received)
    try {
      const stopped = ownHarness.gateway.drain().then(() => 'stopped')
      let state = 'running'
      void stopped.then(result => (state = result))
      await until(() => state === 'stopped', 'the gateway has stopped')
      expect(state).toBe('stopped')
    } finally {
      caller.leave()
      await ownHarness.stop()
    }
  })

  test('is distinguished from an upstream that makes none', async () => {
    harness.upstream.plan(
      scripted(function* stalls() {
        yield streamHead
        yield chunk(role() + piece('x'))
      }),
    )
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('"x"'), 'content has arrived')
    nowMs += limitMs
    await caller.whole()
    expect(caller.text).toContain('upstream_too_slow')
    expect(caller.text).toEndWith(done)
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'over_bound', rule: 'over_bound_answered' })
  })

  test('is not confused with a caller whose upstream writes slowly', async () => {
    const gates = Array.from({ length: 6 }, () => Promise.withResolvers<void>())
    harness.upstream.plan(
      scripted(function* slow() {
        yield streamHead
        for (const [at, { promise }] of gates.entries()) {
          yield chunk(piece(`piece ${at}`))
          yield gate(promise)
        }
        yield chunk(finish() + done)
        yield end
      }),
    )
    const caller = openCall(harness, key, { stream: true })
    for (const [at, { resolve }] of gates.entries()) {
      await caller.until(({ text }) => text.includes(`piece ${at}`), 'the next piece has arrived')
      nowMs += limitMs - 1 // and all pauses together are much longer than one may be
      resolve()
    }
    await caller.whole()
    expect(caller.text).toEndWith(done)
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed' })
  })
})

describe('after the last event', () => {
  test.each([
    ['goes on for ever', 5],
    ['keeps its socket open', 3_600_000],
  ])('an upstream that %s is released', async (_name, ms) => {
    const harness = await startHasty()
    try {
      const key = await harness.key()
      harness.upstream.plan(
        scripted(function* more() {
          yield streamHead
          yield chunk(role() + piece('x') + finish() + done)
          for (;;) {
            yield wait(ms)
            yield chunk(': more\n\n')
          }
        }),
      )
      const received = harness.upstream.nextRequest()
      expect((await openCall(harness, key, { stream: true }).whole()).text).toEndWith(done)
      const request = await received
      await until(() => request.closedAtMs !== undefined, 'the upstream is released')
    } finally {
      await harness.stop()
    }
  })
})
