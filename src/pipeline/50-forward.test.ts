// What an attempt that ends unusually takes from its channel, and gives back.

import { expect, test } from 'bun:test'
import { Deadlines } from '../base/deadlines.ts'
import { Stop } from '../base/stop.ts'
import { Health } from '../routing/health/health.ts'
import type { ForwardParts } from './50-forward.ts'
import { buildForward } from './50-forward.ts'
import type { Exchange, Hold } from './exchange.ts'
import { newAttempt, newCallParts } from './exchange.ts'
import { Timings } from './timings.ts'

/** A channel with one upstream, and calls for it. */
function openChannel(upstreamProtocol: object, send?: () => Promise<unknown>) {
  const health = new Health({ caps: { tokensPerMinute: 100 }, random: () => 0 })
  const candidate = {
    option: { name: 'near/echo' },
    provider: { can: {}, speaks: { 'openai-chat': { plain: '/chat' } }, sign: 'none', quirks: [] },
    model: { id: 'echo' },
    upstreamProtocol,
    size: {},
  }
  const targetChannel = {
    id: 'near#1',
    health,
    channel: { baseUrl: 'http://near', timeouts: {}, signs: { 'openai-chat': () => ({}) } },
  }
  const channelPicker = {
    begin() {},
    next: async () => ({ candidate, targetChannel, channelUse: health.begin(100, 0), sinceMs: 0 }),
    onChannelFreed() {},
    onAnswered() {},
  }
  const parts = {
    onForward() {},
    onAttemptFailed() {},
    times: { firstContentMs: 1_000, betweenChunksMs: 1_000 },
    reservations: { begin() {}, coverWhole() {} },
    channelPicker,
    deadlines: new Deadlines(() => 0),
    send,
  } as unknown as ForwardParts
  const exchangeOf = () => ({
    ...newCallParts(),
    attempts: [],
    attempt: newAttempt(),
    lifetime: { stop: new Stop(), isOver: false },
    timings: new Timings(() => 0),
    protocol: upstreamProtocol,
  })
  const route = { candidates: [candidate], permit: { caller: {} } }
  const hold = { route, call: { stream: false, body: Buffer.alloc(0) } } as unknown as Hold
  const forward = (exchange: object) => buildForward(parts)(hold, exchange as Exchange)
  return { health, exchangeOf, forward }
}

test('a gateway fault opens no circuit breaker and holds no slot of the channel', async () => {
  const { health, exchangeOf, forward } = openChannel({
    name: 'openai-chat',
    writeCall() {
      throw new TypeError('a mistake')
    },
  })
  for (let call = 0; call < 9; call++) await expect(forward(exchangeOf())).rejects.toThrow('a mistake')
  expect([health.stateFor(100, 0), health.activeCalls]).toEqual(['available', 0])
})

test('an answer that is opened after its call is over holds no slot of the channel', async () => {
  const upstreamProtocol = {
    name: 'openai-chat',
    writeCall: () => Buffer.from('{}'),
    readAnswer: () => ({ outputBytes: 1 }),
  }
  const incoming = {
    status: 200,
    header: () => null,
    headIncludes: () => false,
    unreadPiece: Buffer.from('{}'),
    async readWhole() {
      exchange.lifetime.isOver = true
      return Buffer.from('{}')
    },
  }
  const { health, exchangeOf, forward } = openChannel(upstreamProtocol, async () => incoming)
  const exchange = exchangeOf()
  await forward(exchange)
  expect(health.activeCalls).toBe(0)
})
