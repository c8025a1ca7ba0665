// When a checkpoint of a stream is written, and for which cost: that of the delivered bytes, not of the received ones.

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

function setUp() {
  const checkpoints: bigint[] = []
  const meter = { ...newMeter(), outputBytes: 1_000_000, delivered: true }
  const protocol = { name: 'openai-chat' }
  const call = { model: 'smart', inputBytes: 40 }
  const attempt = { candidate, meter }
  const exchange = { ...newCallParts(), attempt, protocol, hold: {}, call, startedMs: 0 } as unknown as Exchange
  const checkpoint = buildCheckpoint({
    ledger: { checkpoint: async (_callId, used) => void checkpoints.push(used) },
    log: buildLog('error', () => {}),
    everyMs: EVERY_MS,
  })
  /** The input is ten tokens at 1,000 nanos each. Four bytes of output are a token at 2,000. */
  const costOf = (bytes: number): bigint => 10_000n + BigInt(bytes / 4) * 2_000n
  const checkpointAt = (nowMs: number, deliveredBytes: number): readonly bigint[] => {
    meter.deliveredBytes = deliveredBytes
    checkpoint(exchange, nowMs)
    return checkpoints.splice(0)
  }
  return { exchange, meter, checkpointAt, costOf }
}

test('a stream gets a checkpoint when it is old enough, then after each interval or many delivered bytes', () => {
  const { checkpointAt, costOf } = setUp()
  expect(checkpointAt(EVERY_MS - 1, 400_000)).toEqual([])
  expect(checkpointAt(EVERY_MS, 400)).toEqual([costOf(400)])
  expect(checkpointAt(EVERY_MS + 1, 404)).toEqual([])
  expect(checkpointAt(EVERY_MS + 2, 400 + bounds.checkpointBytesMax)).toEqual([costOf(400 + bounds.checkpointBytesMax)])
  expect(checkpointAt(2 * EVERY_MS + 1, 9_000)).toEqual([])
  expect(checkpointAt(2 * EVERY_MS + 2, 9_000)).toEqual([costOf(9_000)])
  expect(checkpointAt(9 * EVERY_MS, 9_000)).toEqual([]) // nothing was delivered since
})

test('there is no checkpoint without delivered bytes, without a hold, or after the settlement', () => {
  const { exchange, checkpointAt } = setUp()
  expect(checkpointAt(EVERY_MS, 0)).toEqual([])
  exchange.settlement.settled = Promise.resolve()
  expect(checkpointAt(EVERY_MS, 400)).toEqual([])
  delete exchange.settlement.settled
  delete exchange.hold
  expect(checkpointAt(EVERY_MS, 400)).toEqual([])
})

test('a collected answer gets none, because its caller has nothing of it yet', () => {
  const { meter, checkpointAt } = setUp()
  meter.delivered = false
  expect(checkpointAt(10 * EVERY_MS, 400_000)).toEqual([])
})
