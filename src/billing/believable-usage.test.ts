import { expect, test } from 'bun:test'
import { isExcessive } from './believable-usage.ts'

const size = { inputTokensMax: 40_000, outputTokensMax: 1_000, thoughtTokensMax: 50_000, choices: 2, searchesMax: 20 }
const isFarTooMuch = (usage: object, withTools = false): boolean =>
  isExcessive({ input: 0, output: 0, ...usage }, { size: { ...size, units: { seconds: 300 } }, withTools })

test.each([
  ['input', { cacheRead: 399_999, input: 1 }, { cacheRead: 400_000, input: 1 }],
  ['output of all choices', { reasoning: 1_020_000 }, { reasoning: 1_020_000, output: 1 }],
  ['searches', { searches: 1_000 }, { searches: 1_001 }],
  ['units that the request has', { seconds: 3_000 }, { seconds: 3_001 }],
  ['units that it does not have', { images: 1_000 }, { images: 1_001 }],
])('a report of up to ten times the largest size is believed: %s', (_what, believed, tooMuch) => {
  expect([isFarTooMuch(believed), isFarTooMuch(tooMuch), isFarTooMuch(tooMuch, true)]).toEqual([false, true, false])
})

test('tools of the provider read the input again and again, but not without end', () => {
  expect([isFarTooMuch({ input: 4_000_000 }, true), isFarTooMuch({ input: 4_000_001 }, true)]).toEqual([false, true])
})
