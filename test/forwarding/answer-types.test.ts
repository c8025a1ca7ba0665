// What the headers of an upstream's answer say about its body: types that servers write in other ways or not at all, and
// encodings that nobody asked for.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { buildBodyTo } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { bytes, end, head, scripted, toBytes } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startHarness()
  key = await harness.key()
})
afterAll(() => harness.stop())

type Headers = Readonly<Record<string, string>>

function sent(status: number, headers: Headers, body: Uint8Array): ReturnType<Script['steps']> {
  return [head(status, { ...headers, 'content-length': String(body.length) }), bytes(body), end]
}

/** A good answer with these headers. */
const goodWith = (headers: Headers): Script =>
  scripted(request => sent(200, headers, buildBodyTo(request, 'Hello, river').body))

async function ask(script: Script, stream: boolean) {
  harness.upstream.plan(script)
  const response = await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello, stream })
  const text = await response.text()
  await harness.idle()
  return { response, text, record: harness.lastRecord()! }
}

const types: readonly (readonly [string, Headers])[] = [
  ['in capitals', { 'content-type': 'TEXT/EVENT-STREAM; charset=UTF-8' }],
  ['text', { 'content-type': 'text/plain; charset=utf-8' }],
  ['bytes', { 'content-type': 'application/octet-stream' }],
  ['missing', {}],
]

test.each(types)('the events of a stream are read if its type is: %s', async (_, headers) => {
  const { response, text, record } = await ask(goodWith(headers), true)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  expect(text).toEndWith('data: [DONE]\n\n')
  expect(text).toContain('Hello')
  expect(record).toMatchObject({ outcome: 'completed', usage_source: 'reported' })
})

test('a body of such a type without events is no answer', async () => {
  for (const body of ['Bad gateway\n', '{"choices":[]}', '<html></html>', 'data: hello\n\n']) {
    const broken = scripted(() => sent(200, { 'content-type': 'text/plain' }, toBytes(body)))
    const { response, record } = await ask(broken, true)
    expect([body, response.status, record.outcome, record.cost]).toEqual([body, 502, 'upstream_failed', 0])
  }
})

test.each([[''], ['identity'], ['Identity']])('a body encoded as "%s" is not encoded', async encoding => {
  const { response } = await ask(goodWith({ 'content-type': 'application/json', 'content-encoding': encoding }), false)
  expect(response.status).toBe(200)
})

test('JSON in capitals is JSON, also in answer to a request for a stream', async () => {
  const json = { choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }] }
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const body = toBytes(JSON.stringify({ id: 'c-1', ...json, usage }))
  const { response, text } = await ask(
    scripted(() => sent(200, { 'content-type': 'Application/JSON' }, body)),
    true,
  )
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  expect(text).toContain('Hello')
})

test('an error counts by its status if its body is encoded', async () => {
  const encoded = (status: number, more: Headers = {}): Script => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', ...more }
    return scripted(() => sent(status, headers, gzipSync('{"error":{"message":"no"}}')))
  }
  const refused = await ask(encoded(422), false)
  expect([refused.response.status, refused.record.outcome]).toEqual([422, 'refused'])
  const limited = await ask(encoded(429, { 'retry-after': '7' }), false)
  expect([limited.response.status, limited.response.headers.get('retry-after')]).toEqual([503, '7'])
})
