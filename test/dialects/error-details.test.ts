// The details of an upstream's error, which say what is wrong with a request, reach callers of the same dialect and no
// others.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ApiError, GoogleGenAI } from '@google/genai'
import { jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { bytes, end, head, script, toBytes } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import type { Json } from './raw-callers.ts'
import { rawCallers } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key()
})
afterAll(() => harness.stop())

const GOOGLE = 'type.googleapis.com/google.rpc'
const violation = { field: 'contents[0].parts[0].text', description: 'must not be empty' }
const badRequest = { '@type': `${GOOGLE}.BadRequest`, fieldViolations: [violation] }

const planError = (details: unknown): void => {
  const error = { code: 400, message: 'Request contains an invalid argument.', status: 'INVALID_ARGUMENT', details }
  harness.upstream.plan(script(...jsonAnswer(400, JSON.stringify({ error }))))
}

async function raise(caller: Dialect, upstream: Dialect, stream = false): Promise<Json> {
  const input = { model: modelOf(upstream), stream }
  const { path, body } = rawCallers[caller]
  const response = await fetch(harness.url + path(input), {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body(input)),
  })
  expect(response.status).toBe(400)
  return ((await response.json()) as { error: Json }).error
}

const requestInfo = { '@type': `${GOOGLE}.RequestInfo`, requestId: expect.stringMatching(/^req_/) as unknown }

test('a caller of Gemini gets the details of Gemini, in plain calls and streams', async () => {
  for (const stream of [false, true]) {
    planError([badRequest])
    expect((await raise('gemini', 'gemini', stream)).details).toEqual([requestInfo, badRequest])
  }
})

test("Google's SDK shows them", async () => {
  planError([badRequest])
  const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: harness.url } })
  const question = client.models.generateContent({ model: modelOf('gemini'), contents: 'hi' })
  const fault = await question.then(
    () => undefined,
    (error: unknown) => error as ApiError,
  )
  expect(fault).toBeInstanceOf(ApiError)
  expect(fault!.message).toContain(violation.field)
})

test('the id of the request and the wait are never those of the upstream', async () => {
  planError([
    { '@type': `${GOOGLE}.RequestInfo`, requestId: 'of-google' },
    { '@type': `${GOOGLE}.RetryInfo`, retryDelay: '9s' },
    badRequest,
    'no object',
  ])
  expect((await raise('gemini', 'gemini')).details).toEqual([requestInfo, badRequest])
})

test('they contain no credential of the gateway, and are bounded', async () => {
  const told = { '@type': `${GOOGLE}.Help`, links: [{ url: 'https://x.example/?key=sk-gemini' }] }
  planError([told])
  const { details } = await raise('gemini', 'gemini')
  expect(details).toEqual([requestInfo, { ...told, links: [{ url: expect.not.stringContaining('sk-gemini') }] }])
  planError([{ ...badRequest, fieldViolations: Array.from({ length: 100 }, () => violation) }])
  expect((await raise('gemini', 'gemini')).details).toEqual([requestInfo])
})

test('callers of other dialects get none', async () => {
  for (const caller of dialects.filter(dialect => dialect !== 'gemini')) {
    planError([badRequest])
    expect(JSON.stringify(await raise(caller, 'gemini'))).not.toContain(violation.field)
  }
})

const fields = [
  { type: 'missing', loc: ['body', 'messages', 0, 'content'], msg: 'Field required', input: 'secret text' },
  { type: 'extra_forbidden', loc: [], msg: 'Extra inputs are not permitted' },
]
const FIELDS_TEXT = 'body.messages.0.content: Field required; Extra inputs are not permitted'
const wrapped = [{ error: { code: 400, message: 'The seed is not supported.', status: 'INVALID_ARGUMENT' } }]
const written: readonly (readonly [body: object, message: string])[] = [
  [{ detail: 'The seed is not supported.' }, 'The seed is not supported.'],
  [{ detail: fields }, FIELDS_TEXT],
  [wrapped, 'The seed is not supported.'],
  [{ detail: [] }, 'The upstream answered with status 400.'],
  [{ detail: [7, { loc: 'x' }] }, 'The upstream answered with status 400.'],
  [{ object: 'error', message: { detail: fields } }, FIELDS_TEXT],
  [{ message: 'The seed is not supported.' }, 'The seed is not supported.'], // Amazon Bedrock
  [{ Message: 'The seed is not supported.' }, 'The seed is not supported.'],
  [{ code: 1001, msg: 'The seed is not supported.' }, 'The seed is not supported.'],
  [{ error_code: 336_003, error_msg: 'The seed is not supported.' }, 'The seed is not supported.'],
  [{ success: false, errors: [{ code: 7, message: 'No seed.' }, 'No seed at all.'] }, 'No seed.; No seed at all.'],
  [{ error: [{ message: 'The seed is not supported.' }] }, 'The seed is not supported.'],
  [{ title: 'Bad Request', status: 400, detail: 'The seed is not supported.' }, 'The seed is not supported.'],
]

test.each(written)('the reason in an error of another form reaches every caller: %j', async (body, message) => {
  for (const upstream of dialects) {
    for (const caller of dialects) {
      harness.upstream.plan(script(...jsonAnswer(400, JSON.stringify(body))))
      expect([caller, upstream, (await raise(caller, upstream)).message]).toEqual([caller, upstream, message])
    }
  }
})

const bodies: readonly (readonly [about: string, body: string | Uint8Array, message: string])[] = [
  [
    'a text',
    'Failed to read the body: missing field `content` at line 1\n',
    'Failed to read the body: missing field `content` at line 1',
  ],
  ['a text as JSON', '"The seed is not supported."', 'The seed is not supported.'],
  [
    'an event',
    'event: error\ndata: {"error":{"message":"The seed is not supported."}}\n\n',
    'The seed is not supported.',
  ],
  ['an event without its end', 'data: {"error":{"message":"No seed."}}', 'No seed.'],
  ['a web page', '\n<html><h1>400 Bad Request</h1></html>', 'The upstream answered with status 400.'],
  ['bytes', new Uint8Array([0x1f, 0x8b, 8, 0, 255]), 'The upstream answered with status 400.'],
  ['blanks', ' \r\n', 'The upstream answered with status 400.'],
  ['nothing', '', 'The upstream answered with status 400.'],
]

function planBody(body: string | Uint8Array): void {
  const length = toBytes(body).length
  harness.upstream.plan(script(head(400, { 'content-length': String(length) }), bytes(body), end))
}

test.each(bodies)('the body of an error may be %s', async (_about, body, message) => {
  for (const upstream of dialects) {
    for (const caller of dialects) {
      planBody(body)
      expect([caller, upstream, (await raise(caller, upstream, true)).message]).toEqual([caller, upstream, message])
    }
  }
})

test('a text about a context that is too long means the same to callers of other dialects', async () => {
  for (const body of [
    '{"message":"Input is too long for requested model."}',
    'prompt is too long: 9 tokens > 8 maximum',
  ]) {
    harness.upstream.plan(script(...jsonAnswer(400, body)))
    expect((await raise('openai-chat', 'anthropic-messages')).code).toBe('context_length_exceeded')
  }
})

test('a text has no secret of the gateway', async () => {
  planBody('The key sk-gemini is unknown here.')
  expect((await raise('openai-chat', 'gemini')).message).not.toContain('sk-gemini')
})
