// Writes each row of the error table in each dialect: the form that the SDKs read, the status, the request id, and a
// valid end of a stream.

import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from '../base/errors.ts'
import { buildErrorReply, errorRows, Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
import type { ErrorDialectName } from './protocols.ts'
import { errorDialects, protocols } from './protocols.ts'

const dialects = Object.keys(errorDialects) as ErrorDialectName[]
const codes = Object.keys(errorRows) as ErrorCode[]
const requestId = 'req_00000000001'

type ErrorBody = { readonly error: Record<string, unknown>; readonly type?: string; readonly request_id?: string }

function write(dialect: ErrorDialectName, refusal: Refusal) {
  const written = errorDialects[dialect].writeError(buildErrorReply(refusal, requestId))
  return { ...written, json: JSON.parse(written.body) as ErrorBody }
}

const cells = dialects.flatMap(dialect => codes.map(code => [dialect, code] as const))

describe('each dialect writes each row', () => {
  test.each(cells)('%s: %s', (dialect, code) => {
    const { status, body, events, json } = write(dialect, new Refusal(code, 'the detail is for the log'))
    const row = errorRows[code]
    expect(json.error.message).toBe(row.message)
    expect(typeof json.error.type).toBe('string')
    expect(status).toBe(dialect === 'anthropic-messages' && row.kind === 'overloaded' ? 529 : row.status)
    expect(body).toContain(requestId)
    expect(body).not.toContain('the detail is for the log')
    if (row.status === 401) expect(json.error.type).toBe('authentication_error')
    // The event has the same message, and the stream ends after it.
    expect(events).toEndWith('\n\n')
    expect(events).toContain(JSON.stringify(row.message).slice(1, -1))
    for (const block of events.slice(0, -2).split('\n\n')) expect(block).toMatch(/^(event: error\n)?data: .+$/)
  })
})

const slowUpstream = new Refusal('upstream_too_slow', 'x')

describe('an error has the form that the SDKs read:', () => {
  test('OpenAI: message, type, param and code, and [DONE] after the event', () => {
    const invalidField = new Refusal('field_invalid', 'x', {
      param: 'n',
      hint: hintOf('call_field', { name: 'n', says: 'is odd' }),
    })
    const { json, events } = write('openai-chat', invalidField)
    expect(json).toEqual({
      error: {
        message: 'A field or query parameter has a wrong type or value. "n" is odd.',
        type: 'invalid_request_error',
        param: 'n',
        code: 'field_invalid',
      },
      request_id: requestId,
    })
    expect(events).toEndWith('\n\ndata: [DONE]\n\n')
    expect(events.endsWith(protocols['openai-chat'].lastEvent)).toBe(true)
  })

  test('OpenAI: an error of the upstream keeps its message and its own codes', () => {
    const upstream = { status: 422, message: 'No.', type: 'their_type', code: 'their_code', param: 'their_param' }
    const full = write('openai-chat', new Refusal('upstream_refused', 'x', { upstream }))
    expect(full.status).toBe(422)
    expect(full.json.error).toEqual({ message: 'No.', type: 'their_type', code: 'their_code', param: 'their_param' })
    const short = { status: 400, message: 'No.' }
    const bare = write('openai-chat', new Refusal('upstream_refused', 'x', { upstream: short }))
    expect(bare.json.error).toEqual({ message: 'No.', type: 'invalid_request_error', code: null, param: null })
  })

  test('OpenAI Responses: a named event with the fields at the top level and nested', () => {
    const { events, json } = write('openai-responses', slowUpstream)
    const [name, data] = events.trimEnd().split('\n')
    expect(name).toBe('event: error')
    const sequenceNumber = { sequence_number: expect.any(Number) }
    expect(JSON.parse(data!.slice(6))).toEqual({ ...json.error, type: 'error', error: json.error, ...sequenceNumber })
  })

  test('Anthropic: an object of the type error, and a named event', () => {
    const { json, events } = write('anthropic-messages', slowUpstream)
    expect(json).toEqual({
      type: 'error',
      error: { type: 'timeout_error', message: errorRows.upstream_too_slow.message },
      request_id: requestId,
    })
    expect(events).toStartWith('event: error\ndata: {"type":"error"')
  })

  test.each(['overloaded', 'no_channel', 'draining', 'storage_away', 'upstream_rate_limited'] as const)(
    'Anthropic: %s is a 529 of overloaded_error',
    code => {
      const { status, json } = write('anthropic-messages', new Refusal(code, 'x'))
      expect([status, json.error.type]).toEqual([529, 'overloaded_error'])
    },
  )

  test('Gemini: a numeric code, a status name, and details', () => {
    const { json } = write('gemini', new Refusal('qpm_exceeded', 'x', { retryAfterMs: 1_500 }))
    expect(json.error).toMatchObject({ code: 429, status: 'RESOURCE_EXHAUSTED' })
    expect(json.error.details).toContainEqual({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' })
    expect(write('gemini', new Refusal('key_invalid', 'x')).json.error).toMatchObject({
      code: 401,
      status: 'UNAUTHENTICATED',
      type: 'authentication_error',
    })
  })

  test('Ark: its own types and codes, and each field is a text', () => {
    const { json } = write('ark', new Refusal('model_unknown', 'x', { param: 'model' }))
    expect(json.error).toEqual({
      message: errorRows.model_unknown.message,
      type: 'NotFound',
      code: 'InvalidEndpointOrModel.NotFound',
      param: 'model',
    })
    expect(write('ark', slowUpstream).json.error.param).toBe('')
  })
})

test('some codes have other names in the OpenAI dialect', () => {
  const codeOf = (code: ErrorCode): unknown => write('openai-chat', new Refusal(code, 'x')).json.error.code
  expect([codeOf('key_missing'), codeOf('key_invalid')]).toEqual(['invalid_api_key', 'invalid_api_key'])
  expect([codeOf('model_unknown'), codeOf('provider_unknown')]).toEqual(['model_not_found', 'model_not_found'])
  expect(codeOf('balance_too_low')).toBe('insufficient_balance')
  expect(codeOf('qpm_exceeded')).toBe('rate_limit_exceeded')
  expect(codeOf('body_too_large')).toBe('request_too_large')
})

describe('a context that is too long at an upstream of another dialect', () => {
  const refused = (message: string, status = 400): Refusal =>
    new Refusal('upstream_refused', 'x', { upstream: { status, message, overflow: true } })

  test.each(['openai-chat', 'openai-responses'] as const)('%s: has its code', dialect => {
    const { json, events } = write(dialect, refused('No.'))
    const code = 'context_length_exceeded'
    expect(json.error).toEqual({ message: 'No.', type: 'invalid_request_error', param: null, code })
    expect(events).toContain(code)
  })

  test.each([400, 413])('Anthropic: has its words, once, and its type; status %p', status => {
    const errorOf = (message: string) => write('anthropic-messages', refused(message, status)).json.error
    expect(errorOf('No.')).toEqual({ type: 'invalid_request_error', message: 'prompt is too long: No.' })
    expect(errorOf('Prompt is too long').message).toBe('Prompt is too long')
  })

  test('Gemini: has its sentence, once', () => {
    const errorOf = (message: string) => write('gemini', refused(message)).json.error
    const sentence = 'The input token count exceeds the maximum number of tokens allowed.'
    expect(errorOf('No.')).toMatchObject({ status: 'INVALID_ARGUMENT', message: `${sentence} No.` })
    expect(errorOf(sentence).message).toBe(sentence)
  })
})
