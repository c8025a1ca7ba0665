// A caller that leaves, in each phase of its call: no call stays active, no hold stays open, and nothing reaches an
// upstream that it had not reached.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import net from 'node:net'
import { join } from 'node:path'
import { silence } from '../../tools/fake-upstream/answers.ts'
import { openCall, openRaw, startHasty } from '../forwarding/caller.ts'
import { ask, bearer, CHAT, goodBody } from '../front/asking.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'

let harness: Harness
let key: string

/** Accepts connections and sends nothing: behind https, a handshake that never ends. */
const mute = net.createServer()
const sockets: net.Socket[] = []

beforeAll(async () => {
  mute.on('connection', socket => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.resume()
  })
  await new Promise<void>(resolve => mute.listen(0, '127.0.0.1', resolve))
  const { port } = mute.address() as net.AddressInfo
  harness = await startHasty({ env: { GROQ_API_KEY: 'sk-1', GROQ_BASE_URL: `https://127.0.0.1:${port}` } })
  key = await harness.key({ qpm: 10_000 })
})
afterAll(async () => {
  await harness.stop()
  for (const socket of sockets) socket.destroy()
  mute.close()
})

async function nothingStays(): Promise<void> {
  await harness.idle()
  await until(() => harness.openHolds() === 0, 'no hold is open')
  expect((await harness.balance(key)).held).toBe('0.00')
}

describe.each([false, true])('streamed: %p; a caller that leaves', stream => {
  test('in the middle of its body leaves nothing behind', async () => {
    const bytes = ask('POST', CHAT, { ...bearer(key), 'content-length': '5000' }, goodBody({ stream }))
    const upstreamRequests = harness.upstream.requests.length
    const caller = openRaw(harness.url, bytes)
    await until(() => harness.gateway.activeCalls === 1, 'the call is still active')
    caller.leave()
    await nothingStays()
    expect(harness.upstream.requests.length).toBe(upstreamRequests)
  })

  test('while it waits for its hold leaves nothing behind', async () => {
    const upstreamRequests = harness.upstream.requests.length
    const db = openDatabase(join(harness.folder, 'weir.db'))
    db.run('BEGIN IMMEDIATE')
    const caller = openCall(harness, key, { stream })
    await until(() => harness.gateway.activeCalls === 1, 'the call is still active')
    caller.leave()
    await caller.closed
    // When other requests are answered, the gateway has noticed that the caller left. The hold is still being written.
    for (let round = 0; round < 5; round++) await fetch(`${harness.url}/health/live`)
    db.run('ROLLBACK')
    db.close()
    await nothingStays()
    expect(harness.upstream.requests.length).toBe(upstreamRequests)
    expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left', cost: 0, attempts: 0 })
  })

  test('while its upstream is being connected to leaves nothing behind', async () => {
    const before = sockets.length
    const caller = openCall(harness, key, { model: 'groq/llama-3.3-70b-versatile', stream })
    await until(() => sockets.length === before + 1, 'the connection is open')
    const closed = new Promise<void>(resolve => sockets.at(-1)!.once('close', () => resolve()))
    caller.leave()
    await closed
    await nothingStays()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left', cost: 0 })
  })

  test('while it waits for the first content leaves nothing behind', async () => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream })
    const request = await received
    caller.leave()
    await request.closed
    await nothingStays()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left', usage_source: 'estimated' })
  })

  test('while it waits in the queue of a channel leaves nothing behind', async () => {
    await harness.weir('channels set', { channel: 'openai#1', concurrency: '1' })
    try {
      harness.upstream.plan(silence())
      const received = harness.upstream.nextRequest()
      const first = openCall(harness, key, { stream })
      const request = await received
      const upstreamRequests = harness.upstream.requests.length
      const waiting = Array.from({ length: 5 }, () => openCall(harness, key, { stream }))
      await until(() => harness.openHolds() === 6, 'all hold')
      await Bun.sleep(50)
      for (const caller of waiting) caller.leave()
      await until(() => harness.gateway.activeCalls === 1, 'the waiting calls have left the queue')
      expect([harness.upstream.requests.length, harness.openHolds()]).toEqual([upstreamRequests, 1])
      first.leave()
      await request.closed
      await nothingStays()
    } finally {
      await harness.weir('channels set', { channel: 'openai#1', concurrency: 'none' })
    }
  })
})
