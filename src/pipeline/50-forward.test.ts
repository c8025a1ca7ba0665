// A fault of the gateway during an attempt ends the call, and does not count against the channel.

import { expect, test } from 'bun:test'
import { Deadlines } from '../base/deadlines.ts'
import { Stop } from '../base/stop.ts'
import { Health } from '../routing/health/health.ts'
import type { ForwardParts } from './50-forward.ts'
import { buildForward } from './50-forward.ts'
import type { Exchange, Hold } from './exchange.ts'
import { freshMeter } from './settle/usage-meter.ts'
import { Timings } from './timings.ts'

test('a gateway fault opens no circuit breaker and holds no slot of the channel', async () => {
  const health = new Health({ caps: { tokensPerMinute: 100 }, chance: () => 0 })
  const way = { option: { name: 'near/echo' } }
  const picking = {
    begin() {},
    next: async () => ({ way, seat: { id: 'near#1', health, channel: {} }, turn: health.begin(100, 0) }),
    freed() {},
  }
  const nothing = { onForward() {}, onAttemptFailed() {}, times: { firstContentMs: 1, betweenChunksMs: 1 } }
  const parts = { ...nothing, picking, deadlines: new Deadlines(() => 0) } as unknown as ForwardParts
  const forward = buildForward(parts)
  const spoken = {
    name: 'openai-chat',
    writeCall() {
      throw new TypeError('a mistake')
    },
  }
  for (let call = 0; call < 9; call++) {
    const timings = new Timings(() => 0)
    const exchange = { attempts: [], meter: freshMeter(), stop: new Stop(), timings, protocol: spoken }
    const route = { ways: [way], provider: { can: {} }, model: { id: 'echo' }, spoken, permit: { caller: {} } }
    const hold = { route, call: { stream: false } } as unknown as Hold
    const forwarded = forward(hold, exchange as unknown as Exchange)
    expect(
      await forwarded.then(
        () => undefined,
        fault => (fault as Error).message,
      ),
    ).toBe('a mistake')
  }
  expect([health.standing(100, 0), health.underWay]).toEqual(['open', 0])
})
