// A conversation that is longer than the model's context: an agent must recognise the error whatever dialect the upstream
// speaks, because it then shortens the conversation. An error of the caller's own dialect stays as it is.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import type { Json } from './next-request.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ env: { LOG_LEVEL: 'error' } })
  key = await harness.key()
})
afterAll(() => harness.stop())

const OPENAI = "This model's maximum context length is 128000 tokens. However, your messages resulted in 200000 tokens."
const ANTHROPIC = 'prompt is too long: 210000 tokens > 200000 maximum'
const GOOGLE = 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'

type Caller = Exclude<Dialect, 'ark'>

const openaiError = (message: string): Json => ({
  error: { message, type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' },
})

/** The error of an upstream of each dialect. */
const overflows: Readonly<Record<Caller, Json>> = {
  'openai-chat': openaiError(OPENAI),
  'openai-responses': openaiError('Your input exceeds the context window of this model.'),
  'anthropic-messages': { type: 'error', error: { type: 'invalid_request_error', message: ANTHROPIC } },
  'gemini': { error: { code: 400, status: 'INVALID_ARGUMENT', message: GOOGLE } },
}
const callers = Object.keys(overflows) as Caller[]

const requests: Readonly<Record<Caller, (model: string, stream: boolean) => readonly [path: string, body: Json]>> = {
  'openai-chat': (model, stream) => [
    '/v1/chat/completions',
    { model, stream, messages: [{ role: 'user', content: 'hi' }] },
  ],
  'openai-responses': (model, stream) => ['/v1/responses', { model, stream, input: 'hi' }],
  'anthropic-messages': (model, stream) => [
    '/v1/messages',
    { model, stream, max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] },
  ],
  'gemini': (model, stream) => [
    `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ parts: [{ text: 'hi' }] }] },
  ],
}

/** The caller's error, if the upstream answers with this one. */
async function raise(caller: Caller, upstream: Caller, error: Json, stream = false) {
  harness.upstream.plan(script(...jsonAnswer(400, JSON.stringify(error))))
  const [path, body] = requests[caller](modelOf(upstream), stream)
  const response = await fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, error: ((await response.json()) as { error: Json }).error }
}

/** What agents of each dialect look for: the fields of the error, and words in its message. */
const signs: Readonly<Record<Caller, readonly [fields: Json, words: RegExp]>> = {
  'openai-chat': [{ type: 'invalid_request_error', code: 'context_length_exceeded' }, /./],
  'openai-responses': [{ type: 'invalid_request_error', code: 'context_length_exceeded' }, /./],
  'anthropic-messages': [{ type: 'invalid_request_error' }, /prompt is too long/],
  'gemini': [
    { code: 400, status: 'INVALID_ARGUMENT' },
    /^The input token count .*exceeds the maximum number of tokens allowed/,
  ],
}

describe.each(callers)('a caller of %s', caller => {
  test.each(callers.filter(upstream => upstream !== caller))('recognises the error of %s', async upstream => {
    const given = overflows[upstream]
    for (const stream of [false, true]) {
      const { status, error } = await raise(caller, upstream, given, stream)
      expect(status).toBe(400)
      const [fields, words] = signs[caller]
      expect(error).toMatchObject(fields)
      expect(error.message).toMatch(words)
      expect(error.message).toContain((given.error as Json).message)
    }
  })

  test('gets the error of its own dialect unchanged', async () => {
    const { error } = await raise(caller, caller, overflows[caller])
    expect(error.message).toBe((overflows[caller].error as Json).message)
  })
})

test('a code alone says it', async () => {
  const { error } = await raise('anthropic-messages', 'openai-chat', openaiError('Too much.'))
  expect(error).toEqual({ type: 'invalid_request_error', message: 'prompt is too long: Too much.' })
})

test('another error is not taken for it', async () => {
  const other = { error: { message: 'temperature must be at most 2', type: 'invalid_request_error' } }
  const { error } = await raise('anthropic-messages', 'openai-chat', other as unknown as Json)
  expect(error).toEqual({ type: 'invalid_request_error', message: 'temperature must be at most 2' })
})
