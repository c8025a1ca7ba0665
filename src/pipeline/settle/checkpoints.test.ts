// When a checkpoint of a stream is written, and for how much: what was delivered, not what was received.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { buildLog } from '../../base/log.ts'
import { parsePrice } from '../../base/money/price.ts'
import type { Exchange } from '../exchange.ts'
import { newCallParts } from '../exchange.ts'
import { buildCheckpoint } from './checkpoints.ts'
import { newMeter } from './usage-meter.ts'

const price = parsePrice({ input: '1', output: '2' }, problem => {
  throw new Error(problem)
})
const candidate = {
  provider: { id: 'far' },
  model: { id: 'echo' },
  option: { name: 'far/echo' },
  price: { price, version: 1, perMille: 1_000n, serviceClass: undefined, atMs: 0 },
  size: { inputTokensMax: 1_000, outputTokensMax: 1_000_000, choices: 1, searchesMax: 0 },
}
const EVERY_MS = 5_000

function scene() {
  const noted: bigint[] = []
  const meter = { ...newMeter(), outputBytes: 1_000_000 }
  const protocol = { name: 'openai-chat' }
  const call = { model: 'smart', inputBytes: 40 }
  const attempt = { candidate, meter }
  const exchange = { ...newCallParts(), attempt, protocol, hold: {}, call, startedMs: 0 } as unknown as Exchange
  const checkpoint = buildCheckpoint({
    ledger: { checkpoint: async (_callId, used) => void noted.push(used) },
    log: buildLog('error', () => {}),
    everyMs: EVERY_MS,
  })
  /** Ten tokens of input at 1,000 nanos each; four bytes of output at 2,000. */
  const costOf = (bytes: number): bigint => 10_000n + BigInt(bytes / 4) * 2_000n
  const lookAt = (nowMs: number, deliveredBytes: number): readonly bigint[] => {
    meter.deliveredBytes = deliveredBytes
    checkpoint(exchange, nowMs)
    return noted.splice(0)
  }
  return { exchange, lookAt, costOf }
}

test('a stream gets a checkpoint when it is old enough, then after each interval or many delivered bytes', () => {
  const { lookAt, costOf } = scene()
  expect(lookAt(EVERY_MS - 1, 400_000)).toEqual([])
  expect(lookAt(EVERY_MS, 400)).toEqual([costOf(400)])
  expect(lookAt(EVERY_MS + 1, 404)).toEqual([])
  expect(lookAt(EVERY_MS + 2, 400 + bounds.checkpointBytesMax)).toEqual([costOf(400 + bounds.checkpointBytesMax)])
  expect(lookAt(2 * EVERY_MS + 1, 9_000)).toEqual([])
  expect(lookAt(2 * EVERY_MS + 2, 9_000)).toEqual([costOf(9_000)])
  expect(lookAt(9 * EVERY_MS, 9_000)).toEqual([]) // nothing new
})

test('there is no checkpoint without delivered bytes, without a hold, or after the settlement', () => {
  const { exchange, lookAt } = scene()
  expect(lookAt(EVERY_MS, 0)).toEqual([])
  exchange.settlement.settled = Promise.resolve()
  expect(lookAt(EVERY_MS, 400)).toEqual([])
  delete exchange.settlement.settled
  delete exchange.hold
  expect(lookAt(EVERY_MS, 400)).toEqual([])
})
