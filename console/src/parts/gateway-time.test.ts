import { expect, test } from 'bun:test'
import { gatewayTime } from './gateway-time.ts'

const span = (stage: 'auth' | 'adapt' | 'forward' | 'wait', atMs: number | null, ms: number) => ({ stage, atMs, ms })

test('stages inside of the time at the upstream are counted once, as time of the gateway', () => {
  const timeline = [span('auth', 0, 1), span('forward', 2, 10), span('adapt', 2, 1), span('wait', 6, 3)]
  expect(gatewayTime({ timeline, durationMs: 13 })).toBe(7)
})

test('the gateway takes no more than the whole call', () => {
  expect(gatewayTime({ timeline: [span('auth', 0, 1.4)], durationMs: 1 })).toBe(1)
  expect(gatewayTime({ timeline: [span('forward', 0, 1.4)], durationMs: 1 })).toBe(0)
})

test('nothing is said of a record that does not say when its stages began', () => {
  expect(gatewayTime({ timeline: [span('forward', null, 3)], durationMs: 4 })).toBeUndefined()
})
