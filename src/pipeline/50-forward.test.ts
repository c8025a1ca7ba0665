// A fault of the gateway during an attempt ends the call, and does not count against the channel.

import { expect, test } from 'bun:test'
import { Deadlines } from '../base/deadlines.ts'
import { Stop } from '../base/stop.ts'
import { Health } from '../routing/health/health.ts'
import type { ForwardParts } from './50-forward.ts'
import { buildForward } from './50-forward.ts'
import type { Exchange, Hold } from './exchange.ts'
import { newAttempt, newCallParts } from './exchange.ts'
import { Timings } from './timings.ts'

test('a gateway fault opens no circuit breaker and holds no slot of the channel', async () => {
  const health = new Health({ caps: { tokensPerMinute: 100 }, random: () => 0 })
  const upstreamProtocol = {
    name: 'openai-chat',
    writeCall() {
      throw new TypeError('a mistake')
    },
  }
  const candidate = {
    option: { name: 'near/echo' },
    provider: { can: {} },
    model: { id: 'echo' },
    upstreamProtocol,
  }
  const channelPicker = {
    begin() {},
    next: async () => ({
      candidate,
      targetChannel: { id: 'near#1', health, channel: {} },
      channelUse: health.begin(100, 0),
    }),
    onChannelFreed() {},
  }
  const noHooks = { onForward() {}, onAttemptFailed() {}, times: { firstContentMs: 1, betweenChunksMs: 1 } }
  const reservations = { begin() {} }
  const parts = {
    ...noHooks,
    reservations,
    channelPicker,
    deadlines: new Deadlines(() => 0),
  } as unknown as ForwardParts
  const forward = buildForward(parts)
  for (let call = 0; call < 9; call++) {
    const timings = new Timings(() => 0)
    const exchange = {
      ...newCallParts(),
      attempts: [],
      attempt: newAttempt(),
      lifetime: { stop: new Stop() },
      timings,
      protocol: upstreamProtocol,
    }
    const route = { candidates: [candidate], permit: { caller: {} } }
    const hold = { route, call: { stream: false } } as unknown as Hold
    const forwarded = forward(hold, exchange as unknown as Exchange)
    expect(
      await forwarded.then(
        () => undefined,
        fault => (fault as Error).message,
      ),
    ).toBe('a mistake')
  }
  expect([health.stateFor(100, 0), health.activeCalls]).toEqual(['available', 0])
})
