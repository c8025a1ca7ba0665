// How long a WebSocket lives: its 60 minutes, the bounds on connections, shutdown, and a gateway that is short of memory.

import { describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { DAY_MS } from '../../src/base/time.ts'
import { pausedStream, silence, streamed } from '../../tools/fake-upstream/answers.ts'
import { holdTimers } from '../forwarding/held-timers.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { startHarness, until } from '../support/gateway.ts'
import type { Wire } from '../support/responses-wire.ts'
import type { SocketClient } from './client.ts'
import { buildFrame, connect, responseOf, textOf } from './client.ts'

async function withGateway(options: HarnessOptions, run: (harness: Harness) => Promise<void>): Promise<void> {
  const harness = await startHarness(options)
  try {
    await run(harness)
  } finally {
    void harness.gateway.drain() // a second drain ends the window
    await harness.stop()
  }
}

/** A response that has begun, and the function that ends it. */
async function begin(harness: Harness, client: SocketClient): Promise<() => void> {
  const ends = Promise.withResolvers<void>()
  harness.upstream.plan(pausedStream(['one', 'two'], ends.promise))
  client.create({ input: 'x', store: false })
  await client.until(() => textOf(client.events).includes('one'), 'content has arrived')
  return ends.resolve
}

/** A clock that stands still until a test sets it forward. */
function steppingClock() {
  let aheadMs = 0
  const clock = { nowMs: () => aheadMs, dateMs: () => Date.now() }
  return { clock, goTo: (ms: number) => (aheadMs = ms) }
}

describe('after its 60 minutes', () => {
  const expired = { type: 'error', status: 400, error: { code: 'websocket_connection_limit_reached' } }

  test('an idle connection gets an error and closes', async () => {
    const { clock, goTo } = steppingClock()
    await withGateway({ world: { clock } }, async harness => {
      const client = await connect(harness, await harness.key())
      expect(textOf(await client.ask({ input: 'x' }))).toBe('x')
      goTo(bounds.socketMsMax)
      expect(await client.response()).toMatchObject([expired])
      expect(await client.closed()).toMatchObject({ code: 1001 })
    })
  })

  test('a running response ends as usual, and later messages are refused', async () => {
    const { clock, goTo } = steppingClock()
    const socketMs = 30_000 // shorter than any time limit of a call
    await withGateway({ world: { clock, socketMs } }, async harness => {
      const client = await connect(harness, await harness.key())
      const end = await begin(harness, client)
      goTo(socketMs)
      client.create({ input: 'late', stream_id: 'late' })
      const late = (): Wire | undefined => client.events.find(({ stream_id: id }) => id === 'late')
      await client.until(() => late() !== undefined, 'the late message is refused')
      expect(late()).toMatchObject({ ...expired, stream_id: 'late' })
      end()
      await client.closed()
      expect(client.events.filter(({ type }) => type === 'response.completed')).toHaveLength(1)
      expect(textOf(client.events)).toBe('onetwo')
      expect(client.closedWith).toMatchObject({ code: 1001 })
    })
  })
})

test('a key that expires gets 401 for its next message, and loses its connection', async () => {
  let aheadMs = 0
  const clock = { nowMs: () => performance.now(), dateMs: () => Date.now() + aheadMs }
  await withGateway({ world: { clock } }, async harness => {
    const key = await harness.key()
    await harness.weir('keys set', { key, expires: '1d' })
    const client = await connect(harness, key)
    expect(textOf(await client.ask({ input: 'x' }))).toBe('x')
    aheadMs = 2 * DAY_MS
    expect(await client.ask({ input: 'x' })).toMatchObject([{ type: 'error', status: 401 }])
    expect(await client.closed()).toMatchObject({ code: 1008 })
  })
})

describe('an idle connection closes soon after its key', () => {
  const ends: readonly (readonly [string, (harness: Harness, key: string) => Promise<unknown>])[] = [
    ['is revoked', (harness, key) => harness.weir('keys revoke', { key })],
    ['is disabled', (harness, key) => harness.weir('keys set', { key, disable: true })],
    ['may not be used from its address', (harness, key) => harness.weir('keys set', { key, addresses: '192.0.2.1' })],
    ['may not be used for responses', (harness, key) => harness.weir('keys set', { key, endpoints: 'chat' })],
  ]

  test.each(ends)('%s', async (_name, endKey) => {
    const { clock, goTo } = steppingClock()
    await withGateway({ world: { clock } }, async harness => {
      const [key, other] = [await harness.key(), await harness.key()]
      const [idle, kept] = [await connect(harness, key), await connect(harness, other)]
      await endKey(harness, key)
      goTo(bounds.socketKeyCheckMs)
      expect(await idle.closed()).toMatchObject({ code: 1008 })
      expect(textOf(await kept.ask({ input: 'x' }))).toBe('x')
      kept.leave()
    })
  })
})

describe('the number of connections', () => {
  test('of one key is bounded, and a closed one makes room', async () => {
    await withGateway({}, async harness => {
      const key = await harness.key()
      const clients: SocketClient[] = []
      for (let at = 0; at < bounds.socketsOfKeyMax; at++) clients.push(await connect(harness, key))
      expect(clients.every(({ status }) => status === 101)).toBe(true)
      const refused = await connect(harness, key)
      expect(refused.status).toBe(429)
      expect(JSON.parse(refused.body)).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
      expect(refused.header('retry-after')).toBe('1')
      expect((await connect(harness, await harness.key())).status).toBe(101)
      clients[0]!.leave()
      while ((await connect(harness, key)).status !== 101) {} // the gateway sees the closed socket a moment later
      for (const client of clients) client.leave()
    })
  })

  test('counts no handshake that failed', async () => {
    await withGateway({}, async harness => {
      const key = await harness.key()
      for (let at = 0; at <= bounds.socketsOfKeyMax; at++) {
        expect((await connect(harness, key, { headers: { 'sec-websocket-key': '' } })).status).toBe(426)
      }
      expect((await connect(harness, key)).status).toBe(101)
    })
  })
})

describe('when the gateway shuts down', () => {
  test('idle connections close at once, and new ones are refused', async () => {
    const lastCalls = holdTimers(1_000) // so long the gateway still answers new connections (src/boot/drain.ts)
    await withGateway({}, async harness => {
      const key = await harness.key()
      const [idle, busy] = [await connect(harness, key), await connect(harness, key)]
      const end = await begin(harness, busy)
      const drained = harness.gateway.drain()
      expect(await idle.closed()).toMatchObject({ code: 1012 })
      const late = await connect(harness, key)
      expect([late.status, JSON.parse(late.body).error.code]).toEqual([503, 'draining'])
      end()
      await drained
    }).finally(() => lastCalls.release())
  })

  test('a running response runs to its end, waiting messages are refused, and the connection closes', async () => {
    await withGateway({}, async harness => {
      const key = await harness.key()
      const client = await connect(harness, key)
      const end = await begin(harness, client)
      client.create({ input: 'waits' })
      client.create({ input: 'runs beside it', stream_id: 'b' })
      await client.until(() => client.events.some(({ stream_id: id }) => id === 'b'), 'the other stream is answered')
      const drained = harness.gateway.drain()
      client.create({ input: 'too late', stream_id: 'c' })
      await client.until(() => client.events.some(({ stream_id: id }) => id === 'c'), 'the late message is refused')
      end()
      expect(await client.closed()).toMatchObject({ code: 1012 })
      await drained
      const errors = client.events.filter(({ type }) => type === 'error')
      const refused = { status: 503, error: { code: 'draining' } }
      expect(errors).toMatchObject([{ ...refused, stream_id: 'c' }, refused])
      expect(textOf(client.events.filter(({ stream_id: id }) => id === undefined))).toBe('onetwo')
      expect(client.events.filter(({ type }) => type === 'response.completed')).toHaveLength(2)
    })
  })

  test('a response that is still running after the window gets an error and is charged', async () => {
    await withGateway({ env: { WEIR_DRAIN_SECONDS: '0' } }, async harness => {
      const client = await connect(harness, await harness.key())
      await begin(harness, client)
      const drained = harness.gateway.drain()
      expect(await client.closed()).toMatchObject({ code: 1012 })
      expect(client.events.at(-1)).toMatchObject({ type: 'error', code: 'draining' })
      await drained
      expect(harness.records()).toMatchObject([{ outcome: 'drained' }])
      expect(harness.openHolds()).toBe(0)
    })
  })
})

test('a gateway that is short of memory forgets conversations and closes idle connections', async () => {
  let share = 0
  const world = { memoryBytes: () => share * 1e9 }
  await withGateway({ world, env: { WEIR_MEMORY_MB: '1000' } }, async harness => {
    const key = await harness.key()
    const [idle, busy] = [await connect(harness, key), await connect(harness, key)]
    const { id } = responseOf(await busy.ask({ input: 'x', store: false, stream_id: 'kept' }))
    const end = await begin(harness, busy)
    share = 0.99
    expect(await idle.closed()).toMatchObject({ code: 1013 })
    share = 0
    end()
    expect((await busy.response()).at(-1)!.type).toBe('response.completed')
    let code: string | undefined
    do {
      const [event] = await busy.ask({ input: 'x', store: false, previous_response_id: id })
      code = (event!.error as Wire | undefined)?.code as string | undefined
    } while (code === 'overloaded') // until the gateway has measured its memory again
    expect(code).toBe('previous_response_not_found')
    busy.leave()
  })
})

test('a gateway that stays short of memory also closes busy connections of an account that has many', async () => {
  let share = 0
  const world = { memoryBytes: () => share * 1e9 }
  await withGateway({ world, env: { WEIR_MEMORY_MB: '1000' } }, async harness => {
    const [key, other] = [await harness.key(), await harness.key()]
    const few = await connect(harness, other)
    const endFew = await begin(harness, few)
    const busy: SocketClient[] = []
    for (let at = 0; at <= bounds.socketsSparedMax; at++) {
      busy.push(await connect(harness, key))
      await begin(harness, busy[at]!)
    }
    share = 0.99
    for (const client of busy) expect(await client.closed()).toMatchObject({ code: 1013 })
    share = 0
    endFew()
    expect((await few.response()).at(-1)!.type).toBe('response.completed')
    few.leave()
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    // The gateway ended them: each is charged for the one token that its client has got.
    const cut = { outcome: 'gateway_fault', rule: 'gateway_fault_delivered', error: 'overloaded', output_tokens: 1 }
    const records = harness.records()
    expect(records.filter(({ outcome }) => outcome !== 'completed')).toMatchObject(busy.map(() => cut))
    expect(records).toHaveLength(busy.length + 1)
  })
})

test('a response that has not begun when its connection closes because memory is short is free', async () => {
  let share = 0
  const world = { memoryBytes: () => share * 1e9 }
  await withGateway({ world, env: { WEIR_MEMORY_MB: '1000' } }, async harness => {
    const key = await harness.key()
    const clients: SocketClient[] = []
    for (let at = 0; at <= bounds.socketsSparedMax; at++) {
      harness.upstream.plan(silence())
      const received = harness.upstream.nextRequest()
      clients.push(await connect(harness, key))
      clients[at]!.create({ input: 'x', store: false })
      await received
    }
    share = 0.99
    for (const client of clients) expect(await client.closed()).toMatchObject({ code: 1013 })
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    const free = { outcome: 'gateway_fault', rule: 'gateway_fault', cost: 0 }
    expect(harness.records()).toMatchObject(clients.map(() => free))
  })
})

describe('a client that does not read', () => {
  const PONG = buildFrame('', { opcode: 10 })
  /** Larger than the buffers of both sockets. */
  const large = 'x'.repeat(12 * 1024 * 1024)

  /** Waits until the gateway has closed the connection, although the client shows that it is there. */
  async function isClosed(client: SocketClient, passTime = () => {}): Promise<void> {
    await until(() => {
      passTime()
      client.sendBytes(PONG)
      return client.isGone
    }, 'the gateway has closed the connection')
    expect(client.isGone).toBe(true)
  }

  const warmUp = { input: 'x', generate: false, instructions: large }

  /** With each step, a client that has not read since the last one has been silent for too long. No socket gets too old. */
  function impatience() {
    const { clock, goTo } = steppingClock()
    let aheadMs = 0
    const passTime = (): void => void goTo((aheadMs += bounds.betweenChunksMsMax))
    return { world: { clock, socketMs: 1e15 }, passTime }
  }

  test('loses its connection after a while', async () => {
    const { world, passTime } = impatience()
    await withGateway({ world }, async harness => {
      const client = await connect(harness, await harness.key())
      client.create(warmUp)
      await client.stopInMessage()
      await isClosed(client, passTime)
    })
  })

  test('of answers that are sent again loses its connection, and pays for them once', async () => {
    const { world, passTime } = impatience()
    await withGateway({ world }, async harness => {
      const key = await harness.key()
      const message = { input: 'x', store: false, idempotency_key: 'again' }
      harness.upstream.plan(streamed(['x'.repeat(512 * 1024)])) // all of them are larger than the buffers of both sockets
      const first = await connect(harness, key)
      const text = textOf(await first.ask(message))
      expect(text).toHaveLength(512 * 1024)
      first.leave()
      const { balance } = await harness.balance(key)
      const client = await connect(harness, key)
      client.stopReading()
      const streams = Array.from({ length: bounds.socketResponsesMax }, (_, at) => `s${at}`)
      for (const id of streams) client.create({ ...message, stream_id: id })
      const replays = (): readonly object[] => harness.records().filter(({ outcome }) => outcome === 'replayed')
      await until(() => replays().length === streams.length, 'all of them are answered')
      await isClosed(client, passTime)
      await harness.idle()
      expect(await harness.balance(key)).toMatchObject({ balance, held: '0.00' })
      expect(harness.upstream.requests).toHaveLength(1)
      expect(replays()).toHaveLength(streams.length)
      expect(textOf(await (await connect(harness, key)).ask(message))).toBe(text)
    })
  })

  test('loses its connection when the gateway is short of memory', async () => {
    let share = 0
    const world = { memoryBytes: () => share * 1e9 }
    await withGateway({ world, env: { WEIR_MEMORY_MB: '1000' } }, async harness => {
      const client = await connect(harness, await harness.key())
      client.create(warmUp)
      await client.stopInMessage()
      share = 0.99
      await isClosed(client)
    })
  })

  test('loses its connection after its 60 minutes', async () => {
    const { clock, goTo } = steppingClock()
    await withGateway({ world: { clock } }, async harness => {
      const client = await connect(harness, await harness.key())
      client.create(warmUp)
      await client.stopInMessage()
      goTo(bounds.socketMsMax)
      await isClosed(client)
    })
  })
})
