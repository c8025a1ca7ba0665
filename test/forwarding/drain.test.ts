// Drain: running calls have a window to finish in, the rest are ended with an error in their dialect, and all are
// settled.

import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { pausedStream, plain, silence, streamed } from '../../tools/fake-upstream/answers.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { hello, startHarness, until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { Caller } from './caller.ts'
import { errorOf, eventsOf, model, openCall } from './caller.ts'
import { holdTimers } from './held-timers.ts'
import { after, done } from './wire.ts'

/** Runs a gateway on a folder that outlives it, so that the test can read what it left behind. */
async function onFolder(options: HarnessOptions, run: (harness: Harness) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-drain-'))
  const harness = await startHarness({ ...options, folder })
  try {
    await run(harness)
  } finally {
    void harness.gateway.drain() // a second drain ends the window
    await harness.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Waits until the answer is complete or its socket is closed. */
async function ended(caller: Caller): Promise<Caller> {
  await Promise.race([caller.closed, caller.until(({ isWhole }) => isWhole, 'the answer is complete').catch(() => {})])
  return caller
}

describe('within the drain window', () => {
  test('a stream runs to its last event', async () => {
    await onFolder({}, async harness => {
      const ends = Promise.withResolvers<void>()
      harness.upstream.plan(pausedStream(['one', 'two'], ends.promise))
      const caller = openCall(harness, await harness.key(), { stream: true })
      await caller.until(({ text }) => text.includes('one'), 'content has arrived')
      const drained = harness.gateway.drain()
      ends.resolve()
      await ended(caller)
      expect(caller.text).toContain('two')
      expect(caller.text).toEndWith(done)
      expect(caller.isWhole).toBe(true)
      await drained
      expect(harness.records()).toMatchObject([{ outcome: 'completed', status: 200 }])
      expect(harness.openHolds()).toBe(0)
    })
  })

  test('a plain call gets its answer', async () => {
    await onFolder({}, async harness => {
      const opens = Promise.withResolvers<void>()
      harness.upstream.plan(after(opens.promise, plain('x'.repeat(500_000))))
      const received = harness.upstream.nextRequest()
      const caller = openCall(harness, await harness.key(), {})
      await received
      const drained = harness.gateway.drain()
      opens.resolve()
      await ended(caller)
      expect(caller.status).toBe(200)
      expect(caller.isWhole).toBe(true)
      await drained
      expect(harness.records()).toMatchObject([{ outcome: 'completed' }])
      expect(harness.openHolds()).toBe(0)
    })
  })

  test('a call that fails gets its error', async () => {
    const limitMs = 60_000
    let skewMs = 0
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }
    const attemptTimes = { firstContentMs: limitMs, betweenChunksMs: limitMs }
    await onFolder({ world: { clock, attemptTimes } }, async harness => {
      harness.upstream.plan(silence())
      const received = harness.upstream.nextRequest()
      const caller = openCall(harness, await harness.key(), {})
      await received
      const drained = harness.gateway.drain()
      skewMs = limitMs
      await ended(caller)
      expect([caller.status, caller.isWhole]).toEqual([504, true])
      await drained
    })
  })

  test('fifty streams and fifty plain calls all end well', async () => {
    await onFolder({}, async harness => {
      const ends = Promise.withResolvers<void>()
      const key = await harness.key({ qpm: 10_000 })
      harness.upstream.planModel('gpt-4o-mini', after(ends.promise, streamed(['one', 'two'])))
      harness.upstream.planModel('gpt-4o', after(ends.promise, plain('one two')))
      const calls = Array.from({ length: 50 }, () => [
        openCall(harness, key, { stream: true }),
        openCall(harness, key, { model: 'openai/gpt-4o' }),
      ]).flat()
      await until(() => harness.upstream.requests.length === 100, 'all calls are at the upstream')
      const drained = harness.gateway.drain()
      ends.resolve()
      await Promise.all(calls.map(ended))
      expect(calls.filter(caller => caller.status === 200 && caller.isWhole).length).toBe(100)
      await drained
      expect(harness.records().filter(record => record.outcome === 'completed')).toHaveLength(100)
      expect(harness.openHolds()).toBe(0)
    })
  })

  test('new calls are refused, or their connections are', async () => {
    await onFolder({}, async harness => {
      const ends = Promise.withResolvers<void>()
      const key = await harness.key()
      harness.upstream.plan(pausedStream(['one', 'two'], ends.promise))
      const caller = openCall(harness, key, { stream: true })
      await caller.until(({ text }) => text.includes('one'), 'content has arrived')
      const drained = harness.gateway.drain()
      const lateCall = openCall(harness, key, {})
      await ended(lateCall)
      expect([0, 503]).toContain(lateCall.status)
      expect(harness.upstream.requests).toHaveLength(1)
      ends.resolve()
      await ended(caller)
      await drained
    })
  })
})

/** So long the gateway still answers on open connections; then it closes those that are idle (src/boot/drain.ts). */
const LAST_CALLS_MS = 1_000

describe('after the stop signal', () => {
  /** Sends requests one after the other on one connection and returns each complete answer. */
  function keepAlive(harness: Harness, key: string) {
    const { hostname, port } = new URL(harness.url)
    const socket = net.connect(Number(port), hostname)
    let received = ''
    let isClosed = false
    socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1')))
    socket.on('error', () => {})
    socket.on('close', () => (isClosed = true))
    const body = JSON.stringify({ model, messages: hello })
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    return {
      isClosed: () => isClosed,
      close: () => socket.destroy(),
      async send(): Promise<string> {
        received = ''
        socket.write(post('/v1/chat/completions', headers, body))
        await until(() => /\r\n\r\n.*\}$/s.test(received) || isClosed, 'an answer has arrived')
        return received
      },
    }
  }

  const ready = async (harness: Harness): Promise<number> => (await fetch(`${harness.url}/health/ready`)).status

  test('the gateway is not ready at once, but serves for a while and closes each connection after its answer', async () => {
    await onFolder({}, async harness => {
      const key = await harness.key()
      const [used, idle] = [keepAlive(harness, key), keepAlive(harness, key)]
      for (const connection of [used, idle]) expect(await connection.send()).toStartWith('HTTP/1.1 200')
      expect(await ready(harness)).toBe(200)
      const drained = harness.gateway.drain(3_600_000)
      expect(await ready(harness)).toBe(503)
      const answer = await used.send()
      expect(answer).toStartWith('HTTP/1.1 200')
      expect(answer.toLowerCase()).toContain('connection: close')
      await until(() => used.isClosed(), 'its connection is closed')
      expect((await openCall(harness, key, {}).whole()).status).toBe(200)
      void harness.gateway.drain() // a second drain ends the delay
      await drained
      expect(harness.openHolds()).toBe(0)
      idle.close()
    })
  })

  test('the delay ends by itself', async () => {
    await onFolder({}, async harness => {
      expect(await harness.gateway.drain(50)).toBeUndefined()
    })
  })

  test('a call that arrives later on an open connection is answered', async () => {
    const lastCalls = holdTimers(LAST_CALLS_MS)
    await onFolder({}, async harness => {
      const key = await harness.key()
      const ends = Promise.withResolvers<void>()
      const connections = Array.from({ length: 20 }, () => keepAlive(harness, key))
      for (const connection of connections) expect(await connection.send()).toStartWith('HTTP/1.1 200')
      harness.upstream.plan(pausedStream(['one', 'two'], ends.promise))
      const caller = openCall(harness, key, { stream: true })
      await caller.until(({ text }) => text.includes('one'), 'content has arrived')
      const drained = harness.gateway.drain()
      for (const connection of connections) {
        const answer = await connection.send()
        expect(answer).toStartWith('HTTP/1.1 503')
        expect(answer.toLowerCase()).toContain('connection: close')
        expect(answer).toContain('"draining"')
        await until(() => connection.isClosed(), 'its connection is closed')
      }
      ends.resolve()
      await ended(caller)
      expect(caller.text).toEndWith(done)
      await drained
      expect(harness.openHolds()).toBe(0)
    }).finally(() => lastCalls.release())
  })

  test('a second signal during the delay ends the wait', async () => {
    await onFolder({ env: { WEIR_DRAIN_SECONDS: '3600' } }, async harness => {
      harness.upstream.plan(pausedStream(['one', 'two'], new Promise(() => {})))
      const caller = openCall(harness, await harness.key(), { stream: true })
      await caller.until(({ text }) => text.includes('one'), 'content has arrived')
      const drained = harness.gateway.drain(3_600_000)
      void harness.gateway.drain(3_600_000)
      await ended(caller)
      expect(caller.text).toContain('draining')
      await drained
      expect(harness.openHolds()).toBe(0)
    })
  })

  test('the delay is not longer than the window', async () => {
    await onFolder({ env: { WEIR_DRAIN_SECONDS: '0' } }, async harness => {
      expect(await harness.gateway.drain(3_600_000)).toBeUndefined()
    })
  })
})

describe('when the drain window is over', () => {
  const noWindow = { env: { WEIR_DRAIN_SECONDS: '0' } }

  test('a stream ends with an error event and is settled', async () => {
    await onFolder(noWindow, async harness => {
      const key = await harness.key({ credit: '1' })
      harness.upstream.plan(pausedStream(['one', 'two'], new Promise(() => {})))
      const received = harness.upstream.nextRequest()
      const caller = openCall(harness, key, { stream: true })
      await caller.until(({ text }) => text.includes('one'), 'content has arrived')
      const drained = harness.gateway.drain()
      await ended(caller)
      expect(errorOf(eventsOf(caller.body).at(-2)!)).toMatchObject({ type: 'server_error', code: 'draining' })
      expect(caller.text).toEndWith(done)
      expect(caller.isWhole).toBe(true)
      await (await received).closed
      await drained
      const delivered = { outcome: 'drained', rule: 'drained_delivered', status: 503, output_tokens: 1 }
      expect(harness.records()).toMatchObject([delivered])
      expect(harness.openHolds()).toBe(0)
    })
  })

  test('a plain call and a stream without content are refused and settled', async () => {
    await onFolder(noWindow, async harness => {
      const key = await harness.key()
      harness.upstream.planModel('gpt-4o-mini', silence())
      const calls = [openCall(harness, key, {}), openCall(harness, key, { stream: true })]
      await until(() => harness.upstream.requests.length === 2, 'both are at the upstream')
      const drained = harness.gateway.drain()
      await Promise.all(calls.map(ended))
      for (const caller of calls) {
        expect([caller.status, caller.isWhole]).toEqual([503, true])
        expect(errorOf(caller.body).code).toBe('draining')
        expect(Number(caller.header('retry-after'))).toBeGreaterThan(0)
      }
      await drained
      await Promise.all(harness.upstream.requests.map(request => request.closed))
      expect(harness.records()).toMatchObject([{ cost: 0 }, { cost: 0 }])
      expect(harness.openHolds()).toBe(0)
    })
  })

  test('two hundred streams end and leave no hold', async () => {
    await onFolder(noWindow, async harness => {
      const key = await harness.key({ qpm: 10_000 })
      harness.upstream.planModel('gpt-4o-mini', pausedStream(['one', 'two'], new Promise(() => {})))
      const calls = Array.from({ length: 200 }, () => openCall(harness, key, { stream: true }))
      await Promise.all(calls.map(caller => caller.until(({ text }) => text.includes('one'), 'content has arrived')))
      const drained = harness.gateway.drain()
      await Promise.all(calls.map(ended))
      expect(calls.filter(caller => caller.isWhole && caller.text.endsWith(done))).toHaveLength(200)
      await drained
      expect(harness.recordCount()).toBe(200)
      expect(harness.openHolds()).toBe(0)
    })
  })

  test('a second signal does not wait for the window', async () => {
    await onFolder({ env: { WEIR_DRAIN_SECONDS: '3600' } }, async harness => {
      harness.upstream.plan(pausedStream(['one', 'two'], new Promise(() => {})))
      const caller = openCall(harness, await harness.key(), { stream: true })
      await caller.until(({ text }) => text.includes('one'), 'content has arrived')
      const drained = harness.gateway.drain()
      expect(harness.gateway.activeCalls).toBe(1)
      void harness.gateway.drain()
      await ended(caller)
      expect(caller.text).toContain('draining')
      await drained
      expect(harness.openHolds()).toBe(0)
    })
  })
})
