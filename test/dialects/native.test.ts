// The same dialect on both sides: the upstream gets the caller's bytes with the model replaced, and the caller gets the
// upstream's bytes, except for whole comments of the gateway.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { jsonAnswer, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key()
})
afterAll(() => harness.stop())

interface Native {
  path(model: string, stream: boolean): string
  /** A body with unknown fields, odd spaces, escapes and numbers that a serializer would write differently. */
  body(model: string, stream: boolean): string
  readonly golden: string
}

const odd = '"x_future": {"n": 1e2, "big": 12345678901234567890, "s": "\\u00e9\\/"} , '
const model = (name: string): string => `"model" : ${JSON.stringify(name)}`
const talk = '"messages":[{"role":"user","content":"Hi \\ud83c\\udf0a","x":null}]'
const chatBody = (name: string, stream: boolean): string =>
  `{ ${odd}${model(name)} , "stream": ${stream}, "stream_options":{"include_usage":true}, ${talk} }\n`

const natives: Readonly<Record<Dialect, Native>> = {
  'openai-chat': { path: () => '/v1/chat/completions', body: chatBody, golden: 'chat' },
  'ark': { path: () => '/api/v3/chat/completions', body: chatBody, golden: 'chat' },
  'openai-responses': {
    path: () => '/v1/responses',
    body: (name, stream) => `{${odd}"input":"Hi","store":false,"stream":${stream},${model(name)}}`,
    golden: 'responses',
  },
  'anthropic-messages': {
    path: () => '/v1/messages?beta=true',
    body: (name, stream) => `{${odd}"max_tokens":9,${model(name)},"stream":${stream},${talk}}`,
    golden: 'anthropic',
  },
  'gemini': {
    path: (name, stream) => `/v1beta/models/${name}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => `{ ${odd}"contents" : [{"parts":[{"text":"Hi"}]}] }`,
    golden: 'gemini',
  },
}

const golden = (name: string): string => readFileSync(join(import.meta.dir, '..', 'golden', name), 'utf8')
const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)

describe.each(dialects)('a native call of %s', dialect => {
  const { path, body, golden: name } = natives[dialect]
  const named = modelOf(dialect)

  async function call(
    stream: boolean,
    answer: string,
  ): Promise<{ readonly answerText: string; readonly sentBody: string }> {
    const steps = stream ? [streamHead, chunk(answer), end] : jsonAnswer(200, answer)
    harness.upstream.plan(script(...steps))
    const received = harness.upstream.nextRequest()
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', 'anthropic-beta': 'b-1' }
    const sent = { method: 'POST', headers, body: body(named, stream) }
    const response = await fetch(harness.url + path(named, stream), sent)
    expect([response.status, response.headers.get('x-weir-loss')]).toEqual([200, null])
    const answerText = await response.text()
    const { body: bytes } = await received
    return { answerText: answerText, sentBody: Buffer.from(bytes).toString() }
  }

  test.each([
    ['plain', false],
    ['streamed', true],
  ] as const)('passes unchanged, %s', async (_name, stream) => {
    const extra = stream ? ': unknown comment\n\n' : ''
    const answer = extra + golden(`${name}.${stream ? 'sse' : 'json'}`)
    const { answerText, sentBody } = await call(stream, answer)
    expect(sentBody).toBe(body('echo', stream))
    expect(answerText.replace(/: X-Pipeline-Breakdown [^\n]*\n\n/, '')).toBe(answer)
    await harness.idle()
    const record = harness.lastRecord()
    expect(record).toMatchObject({
      came_hash: shortHash(body(named, stream)),
      went_hash: shortHash(sentBody),
      loss: null,
    })
    expect(record).toMatchObject({ input_tokens: 100, cache_read_tokens: 60, output_tokens: 40, reasoning_tokens: 10 })
    expect(record).toMatchObject({ usage_source: 'reported', dialect })
  })

  test('forwards only the headers that its dialect names', async () => {
    const received = harness.upstream.nextRequest()
    await call(false, golden(`${name}.json`))
    const { headers } = await received
    const isMessages = dialect === 'anthropic-messages'
    expect(headers.get('anthropic-beta')).toBe(isMessages ? 'b-1' : undefined)
    expect(headers.get('anthropic-version')).toBe(isMessages ? '2023-06-01' : undefined)
  })
})

describe('the record has the hash of the request', () => {
  const post = async (body: string): Promise<{ readonly id?: string }> => {
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(`${harness.url}/v1/responses`, { method: 'POST', headers, body })
    const answer = (await response.json()) as { readonly id?: string }
    await harness.idle()
    return answer
  }
  const named = modelOf('openai-chat')

  test('of a call with a previous response, which is sent with its history', async () => {
    const { id } = await post(JSON.stringify({ model: named, input: 'one' }))
    const body = JSON.stringify({ model: named, input: 'two', previous_response_id: id })
    await post(body)
    const record = harness.lastRecord()
    expect(record).toMatchObject({ came_hash: shortHash(body), status: 200 })
  })

  test('of a call that was not sent upstream', async () => {
    const body = JSON.stringify({ model: 'nobody/knows', input: 'one' })
    const before = harness.recordCount()
    await post(body)
    await until(() => harness.recordCount() > before, 'the call is recorded') // the answer does not wait for the record of a refused call
    expect(harness.records().slice(before)).toMatchObject([{ came_hash: shortHash(body), went_hash: null }])
  })
})
