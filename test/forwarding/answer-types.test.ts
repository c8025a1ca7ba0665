// What the headers of an upstream's answer say about its body: types that servers write in other ways or not at all, and
// encodings that nobody asked for.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { buildBodyTo } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { bytes, end, head, scripted, split, toBytes } from '../../tools/fake-upstream/script.ts'
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

const wholeAnswer = {
  id: 'c-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}

const types: readonly (readonly [string, Headers])[] = [
  ['in capitals', { 'content-type': 'TEXT/EVENT-STREAM; charset=UTF-8' }],
  ['text', { 'content-type': 'text/plain; charset=utf-8' }],
  ['bytes', { 'content-type': 'application/octet-stream' }],
  ['missing', {}],
  ['JSON', { 'content-type': 'application/json' }],
  ['a web page', { 'content-type': 'text/html; charset=utf-8' }],
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

const asEvents: Headers = { 'content-type': 'text/event-stream' }

test.each([[false], [true]])('JSON whose type says that it is events is a whole answer; streamed: %p', async stream => {
  const body = toBytes(JSON.stringify(wholeAnswer))
  const { response, text, record } = await ask(
    scripted(() => sent(200, asEvents, body)),
    stream,
  )
  const type = stream ? 'text/event-stream; charset=utf-8' : 'application/json'
  expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
  if (stream) expect(text).toEndWith('data: [DONE]\n\n')
  else expect(text).toBe(JSON.stringify(wholeAnswer))
  expect(text).toContain('"Hello"')
  expect(record).toMatchObject({ outcome: 'completed', usage_source: 'reported' })
})

test('events whose type says that they are JSON are collected where a whole answer was requested', async () => {
  const events = [{ delta: { role: 'assistant', content: 'Hel' } }, { delta: { content: 'lo' }, finish_reason: 'stop' }]
  const chunks = events.map(choice => `data: ${JSON.stringify({ id: 'c-1', choices: [{ index: 0, ...choice }] })}\n\n`)
  const { response, text } = await ask(
    scripted(() => sent(200, { 'content-type': 'application/json' }, toBytes(`${chunks.join('')}data: [DONE]\n\n`))),
    false,
  )
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
  expect(JSON.parse(text)).toMatchObject({ choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] })
})

test('an error in place of the events counts by what it says', async () => {
  const refused = { message: 'No such tool.', type: 'invalid_request_error', code: 400 }
  const limited = { message: 'Slow down.', type: 'rate_limit_error', code: 'rate_limit_exceeded' }
  for (const [error, status, outcome] of [
    [refused, 400, 'refused'],
    [limited, 503, 'upstream_failed'],
  ] as const) {
    const body = toBytes(JSON.stringify({ error }))
    const { response, record } = await ask(
      scripted(() => sent(200, asEvents, body)),
      true,
    )
    expect([response.status, record.outcome]).toEqual([status, outcome])
  }
})

const beginnings: readonly (readonly [about: string, blanks: string])[] = [
  ['a byte order mark', '\ufeff'],
  ['white space', ' \r\n\t'],
  ['many blank lines', '\n'.repeat(70_000)],
]

test.each(beginnings)('%s before a body does not change its form', async (_about, blanks) => {
  const whole = toBytes(blanks + JSON.stringify(wholeAnswer))
  const inPieces = (body: Uint8Array): Script =>
    scripted(() => [
      head(200, { ...asEvents, 'transfer-encoding': 'chunked' }),
      ...split(body, Math.ceil(body.length / 50)),
      end,
    ])
  const plain = await ask(inPieces(whole), false)
  expect([plain.response.status, plain.record.outcome]).toEqual([200, 'completed'])
  const streamed = await ask(
    scripted(request => {
      const { body } = buildBodyTo(request, 'Hello, river')
      return inPieces(toBytes(Buffer.concat([Buffer.from(blanks), body]))).steps(request)
    }),
    true,
  )
  expect(streamed.text).toEndWith('data: [DONE]\n\n')
})

test('a byte order mark before embeddings does no harm', async () => {
  const body = { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [0.5] }], model: 'm' }
  const json = `\ufeff${JSON.stringify({ ...body, usage: { prompt_tokens: 3, total_tokens: 3 } })}`
  harness.upstream.plan(scripted(() => sent(200, { 'content-type': 'application/json' }, toBytes(json))))
  const response = await fetch(`${harness.url}/v1/embeddings`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'openai/text-embedding-3-small', input: 'Hello' }),
  })
  expect([response.status, await response.json()]).toMatchObject([200, body])
})

test.each([[''], ['identity'], ['Identity']])('a body encoded as "%s" is not encoded', async encoding => {
  const { response } = await ask(goodWith({ 'content-type': 'application/json', 'content-encoding': encoding }), false)
  expect(response.status).toBe(200)
})

test('JSON in capitals is JSON, also in answer to a request for a stream', async () => {
  const body = toBytes(JSON.stringify(wholeAnswer))
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
