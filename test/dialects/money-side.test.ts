// Passthrough calls: none is free because of the way in which its answer reports usage.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Usage } from '../../src/base/money/usage.ts'
import { sizeOf } from '../../src/pipeline/route/call-size.ts'
import { gemini } from '../../src/protocols/gemini/dialect.ts'
import { passthroughProtocols } from '../../src/protocols/passthrough-protocols.ts'
import type { Protocol, RequestHead } from '../../src/protocols/protocol.ts'
import { answer } from '../../tools/fake-upstream/answers.ts'
import type { Harness } from '../support/gateway.ts'
import { lastUpstreamRequest, pairs, requestIn, send } from './money-calls.ts'
import { modelOf, startDialects } from './upstreams.ts'

const emptyHead: RequestHead = { path: '', query: () => null, header: () => undefined }
const protocol = (name: keyof typeof passthroughProtocols): Protocol => passthroughProtocols[name]

function sized(name: keyof typeof passthroughProtocols, json: object) {
  const call = protocol(name).readCall(Buffer.from(JSON.stringify({ model: 'p/m', ...json })), emptyHead)
  return sizeOf(call, { id: 'm' }, { capsThought: true })
}

test('every image of a stream is charged', () => {
  const completed = (output: number): string =>
    JSON.stringify({
      type: 'image_generation.completed',
      usage: { input_tokens: 10, output_tokens: output, total_tokens: 10 + output },
    })
  const { readFrame } = protocol('openai-images')
  const first = readFrame(completed(400)).usage as Usage
  expect(first).toEqual({ input: 10, output: 0, outputImage: 400 })
  expect(readFrame(completed(300), first).usage).toEqual({ input: 20, output: 0, outputImage: 700 })
  expect(readFrame('{"type":"image_generation.completed","usage":"x"}', first).usage).toBe('nonsense')
})

test.each([
  [1.5, 2],
  [3, 3],
  [-1, undefined],
  [1e300, undefined],
  ['4', undefined],
])('a reranker that reports %p searches is charged for %p', (reported, searches) => {
  const meta = { billed_units: { search_units: reported }, tokens: { input_tokens: 9 } }
  const body = JSON.stringify({ results: [{}], meta })
  const { usage } = protocol('openai-rerank').readAnswer(Buffer.from(body))!
  expect(usage).toEqual({ input: 9, output: 0, ...(searches !== undefined && { searches }) })
})

test('the maximum output grows with the request', () => {
  const images = (json: object): number => sized('ark-images', { prompt: 'x', ...json }).outputTokensMax
  expect(images({ sequential_image_generation: 'auto' })).toBe(15 * images({}))
  const imageTokens = (n: number): number => sized('openai-images', { prompt: 'x', n }).outputTokensMax
  expect(imageTokens(10)).toBe(10 * imageTokens(1))
  const speech = (speed: number): number => sized('openai-speech', { input: 'x'.repeat(4_000), speed }).outputTokensMax
  expect(speech(0.25)).toBeGreaterThan(3.9 * speech(1))
  expect(sized('openai-speech', { input: 'x'.repeat(3_000_000) }).units).toEqual({ characters: 3_000_000 })
  const messages = [{ role: 'user', content: 'x' }]
  expect(sized('ark-context-chat', { messages, context_id: 'ctx-1' }).inputTokensMax).toBe(131_072)
})

test('Ark images are counted by the reported number, not by the listed ones', () => {
  const body = { data: [{ url: 'https://x' }], usage: { generated_images: 4, output_tokens: 9, total_tokens: 9 } }
  const { usage } = protocol('ark-images').readAnswer(Buffer.from(JSON.stringify(body)))!
  expect(usage).toMatchObject({ images: 4, outputImage: 9 })
})

test('images and audio of Gemini count as output, also without usage', () => {
  const bytes = (inlineData: object): number =>
    gemini.readFrame(JSON.stringify({ candidates: [{ content: { parts: [{ inlineData }] } }] })).outputBytes
  expect(bytes({ mimeType: 'image/png', data: 'AA==' })).toBe(4 * 1_290)
  expect(bytes({ mimeType: 'audio/L16;rate=24000', data: 'A'.repeat(640_000) })).toBe(10 * 4 * 32)
})

describe('a first slice of the answer is reserved where money is short', () => {
  let harness: Harness
  beforeAll(async () => {
    harness = await startDialects()
  })
  afterAll(() => harness.stop())

  test.each(pairs)('%s on %s', async (caller, upstream) => {
    const key = await harness.key({ credit: '0.003' })
    harness.upstream.plan(answer('Hello', { usage: { input: 5, output: 5 } }))
    const response = await send(harness, key, requestIn(caller, { model: modelOf(upstream), cap: 4_000 }))
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)])
    expect(response.headers.get('x-weir-cap')).toBeNull()
    expect(lastUpstreamRequest(harness).outputMax).toBe(4_000)
    await harness.idle()
    const record = harness.lastRecord()!
    expect(record.held).toBeLessThan(1_000_000)
    expect(record.held).toBeGreaterThanOrEqual(64 * 2_000)
    expect(record).toMatchObject({ outcome: 'completed', cost: 5 * 1_000 + 5 * 2_000, shortfall: 0 })
  })
})
