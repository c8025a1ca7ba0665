// Tests which fields of a chat request are read, which requests are refused, and which fields are replaced.

import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import type { Call, CallTarget, OutputCapField } from '../neutral/call.ts'
import { readCall, writeCall } from './request.ts'

const bytes = (text: string): Buffer => Buffer.from(text)
const good = { model: 'a/b', messages: [{ role: 'user', content: 'hi' }] }
const read = (more: object = {}): Call => readCall(bytes(JSON.stringify({ ...good, ...more })))

function refusalOf(body: string | Buffer): Refusal {
  try {
    readCall(typeof body === 'string' ? bytes(body) : body)
  } catch (fault) {
    if (fault instanceof Refusal) return fault
    throw fault
  }
  throw new Error('not refused')
}

describe('reads', () => {
  test('a minimal call', () => {
    expect(read()).toMatchObject({ model: 'a/b', stream: false, wantsUsage: false, choices: 1 })
    expect(read().outputTokensMax).toBeUndefined()
  })

  test('whether it streams, and whether the caller wants usage', () => {
    expect(read({ stream: true })).toMatchObject({ stream: true, wantsUsage: false })
    expect(read({ stream: true, stream_options: { include_usage: true } }).wantsUsage).toBe(true)
    expect(read({ stream: true, stream_options: { include_usage: 1 } }).wantsUsage).toBe(false)
    expect(read({ stream: null, stream_options: null, n: null, max_tokens: null })).toMatchObject({ stream: false })
  })

  test('the cap on output and the number of choices', () => {
    expect(read({ max_tokens: 5 }).outputTokensMax).toBe(5)
    expect(read({ max_completion_tokens: 7 }).outputTokensMax).toBe(7)
    expect(read({ n: 3 }).choices).toBe(3)
  })

  test('the larger of two caps, because upstreams differ in which one they use', () => {
    expect(read({ max_tokens: 5, max_completion_tokens: 7 }).outputTokensMax).toBe(7)
    expect(read({ max_tokens: 7, max_completion_tokens: 5 }).outputTokensMax).toBe(7)
  })

  test('the service tier, unchanged', () => {
    expect(read({ service_tier: 'priority' }).serviceClass).toBe('priority')
    expect(read({ service_tier: null }).serviceClass).toBeUndefined()
    expect(read().serviceClass).toBeUndefined()
  })

  test('the end user and the tags', () => {
    expect(read({ user: 'u-1', safety_identifier: 's-1' }).endUser).toBe('u-1')
    expect(read({ safety_identifier: 's-1' }).endUser).toBe('s-1')
    expect(read({ metadata: { team: 'search', run: 5 } }).tags).toEqual({ team: 'search' })
    // A call is never refused for its labels.
    const invalidLabels = read({ user: 5, metadata: [], safety_identifier: {} })
    expect([invalidLabels.endUser, invalidLabels.tags]).toEqual([undefined, undefined])
  })

  test('messages whose tool calls or results are all that they have', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const messages = [...good.messages, { role: 'assistant', tool_calls: [call] }, { role: 'tool', content: null }]
    expect(read({ messages }).json.messages).toEqual(messages)
  })

  test('and keeps the bytes themselves', () => {
    const body = bytes(JSON.stringify(good))
    expect(readCall(body).body).toBe(body)
  })
})

describe('refuses', () => {
  const json = (more: object): string => JSON.stringify({ ...good, ...more })
  const message = '"messages":[{"role":"user","content":"hi"}]'
  const deep = '['.repeat(300) + ']'.repeat(300)
  /** The refusal is its code, and the name of the invalid field if there is one. */
  type Row = readonly [name: string, body: string | Buffer, refusal: ErrorCode | `${ErrorCode} ${string}`]
  const rows: readonly Row[] = [
    ['an empty body', '', 'json_invalid'],
    ['text', 'hello', 'json_invalid'],
    ['a cut-off object', '{"model":', 'json_invalid'],
    ['text after the object', `${json({})} x`, 'json_invalid'],
    ['a list', '[]', 'body_not_object'],
    ['a user without content', json({ messages: [{ role: 'user' }] }), 'field_invalid messages[0].content'],
    ['a user with null', json({ messages: [{ role: 'user', content: null }] }), 'field_invalid messages[0].content'],
    ['a number as content', json({ messages: [{ role: 'system', content: 5 }] }), 'field_invalid messages[0].content'],
    ['an object as content', json({ messages: [{ role: 'x', content: {} }] }), 'field_invalid messages[0].content'],
    ['null', 'null', 'body_not_object'],
    ['a number', '5', 'body_not_object'],
    ['a string', '"x"', 'body_not_object'],
    ['bytes that are not UTF-8', Buffer.from('{"model":"a/b","x":"\xff"}', 'latin1'), 'json_invalid'],
    ['half a surrogate pair', `{"model":"a/b",${message},"x":"\\ud83d"}`, 'json_invalid'],
    ['a byte order mark', `\ufeff${json({})}`, 'json_invalid'],
    ['too many levels', `{"model":"a/b",${message},"x":${deep}}`, 'json_too_deep'],
    ['a million levels', '['.repeat(1_000_000), 'json_too_deep'],
    ['no model', JSON.stringify({ messages: good.messages }), 'field_missing model'],
    ['a null model', json({ model: null }), 'field_missing model'],
    ['a model that is a number', json({ model: 5 }), 'field_invalid model'],
    ['no messages', '{"model":"a/b"}', 'field_missing messages'],
    ['messages that are not a list', json({ messages: {} }), 'field_invalid messages'],
    ['an empty list of messages', json({ messages: [] }), 'field_invalid messages'],
    ['a message that is a number', json({ messages: [good.messages[0], 5] }), 'field_invalid messages[1]'],
    ['a message without a role', json({ messages: [{ content: 'x' }] }), 'field_invalid messages[0]'],
    ['a stream flag that is a string', json({ stream: 'true' }), 'field_invalid stream'],
    ['stream_options that are a list', json({ stream_options: [] }), 'field_invalid stream_options'],
    ['no choices', json({ n: 0 }), 'field_invalid n'],
    ['too many choices', json({ n: 129 }), 'field_invalid n'],
    ['a fraction of a choice', json({ n: 1.5 }), 'field_invalid n'],
    ['a cap of zero', json({ max_tokens: 0 }), 'field_invalid max_tokens'],
    ['a negative cap', json({ max_completion_tokens: -1 }), 'field_invalid max_completion_tokens'],
    ['a cap that is too large', json({ max_tokens: 1e12 }), 'field_invalid max_tokens'],
    ['a cap of infinity', `{"model":"a/b",${message},"max_tokens":1e400}`, 'field_invalid max_tokens'],
    ['a cap that is a string', json({ max_tokens: '5' }), 'field_invalid max_tokens'],
    ['a cap that is no safe integer', json({ max_tokens: 2 ** 53 + 2 }), 'field_invalid max_tokens'],
    ['a service tier that is a number', json({ service_tier: 1 }), 'field_invalid service_tier'],
    ['a service tier that is too long', json({ service_tier: 'x'.repeat(65) }), 'field_invalid service_tier'],
    ['a model twice', `{"model":"a/b","model":"a/c",${message}}`, 'field_duplicate model'],
    ['a model twice, once with escapes', `{"model":"a/b","mod\\u0065l":"a/c",${message}}`, 'field_duplicate model'],
    ['messages twice', `{"model":"a/b",${message},${message}}`, 'field_duplicate messages'],
    ['a cap twice', `{"model":"a/b",${message},"max_tokens":1,"max_tokens":2}`, 'field_duplicate max_tokens'],
    ['a stream twice', `{"model":"a/b",${message},"stream":true,"stream":false}`, 'field_duplicate stream'],
    ['tools twice', `{"model":"a/b",${message},"tools":[],"tools":[{"type":"search"}]}`, 'field_duplicate tools'],
    [
      'a service tier twice',
      `{"model":"a/b",${message},"service_tier":1,"service_tier":2}`,
      'field_duplicate service_tier',
    ],
    ['a model in capitals', `{"model":"a/b",${message},"MODEL":"a/c"}`, 'field_duplicate model'],
    ['a cap with a long s', `{"model":"a/b",${message},"max_tokens":1,"max_tokenſ":9}`, 'field_duplicate max_tokens'],
    ['a cap with a sign for kelvin', `{"model":"a/b",${message},"max_to\u212aens":9}`, 'field_duplicate max_tokens'],
    [
      'the usage option in other case',
      `{"model":"a/b",${message},"stream":true,"stream_options":{"Include_Usage":false}}`,
      'field_duplicate stream_options.include_usage',
    ],
    ['a list of models', json({ models: ['a/dear'] }), 'field_invalid models'],
    ['fallback models', json({ fallbacks: [{ model: 'a/dear' }] }), 'field_invalid fallbacks'],
    ['a preset, which may name a model', json({ preset: 'dear' }), 'field_invalid preset'],
    ['n twice', `{"model":"a/b",${message},"n":1,"n":100}`, 'field_duplicate n'],
  ]

  test.each(rows)('%s', (_name, body, expected) => {
    const { code, extras } = refusalOf(body)
    expect(`${code} ${extras.param ?? ''}`.trimEnd()).toBe(expected)
  })

  test('no request with an empty list of models', () => {
    expect(read({ models: [], fallbacks: null }).model).toBe('a/b')
  })

  test('no request for fields that it does not read', () => {
    expect(read({ temperature: 'hot', user: 7, __proto__: null, constructor: {} }).model).toBe('a/b')
  })

  test('a request without a model even if __proto__ has one', () => {
    const call = readCall(bytes(`{"__proto__":{"model":"x/y","stream":true},"model":"a/b",${message}}`))
    expect(call).toMatchObject({ model: 'a/b', stream: false })
    expect(() => readCall(bytes(`{"__proto__":{"model":"x/y"},${message}}`))).toThrow('field_missing')
  })
})

describe('writes a request', () => {
  const writeBody = (text: string, target: Omit<CallTarget, 'capField'> & Partial<CallTarget>): string =>
    Buffer.from(writeCall(readCall(bytes(text)), { capField: 'max_tokens', ...target })).toString()
  const rest = '"messages":[{"role":"user","content":"hi"}]}'

  test('with the model of the upstream in its position', () => {
    expect(writeBody(`{"model":"a/b",${rest}`, { model: 'b', askUsage: true })).toBe(`{"model":"b",${rest}`)
    expect(writeBody(`{"model":"a/b",${rest}`, { model: 'q"\\é', askUsage: true })).toBe(`{"model":"q\\"\\\\é",${rest}`)
  })

  test('with the option for usage only into a stream, and only when needed', () => {
    const stream = `{"stream":true,"model":"a/b",${rest}`
    const plain = stream.replace('true', 'false')
    expect(writeBody(stream, { model: 'a/b', askUsage: true })).toBe(
      stream.replace('{', '{"stream_options":{"include_usage":true},'),
    )
    expect(writeBody(stream, { model: 'a/b', askUsage: false })).toBe(stream)
    expect(writeBody(plain, { model: 'a/b', askUsage: true })).toBe(plain)
  })

  test('with the option for usage into existing options', () => {
    const optionsAfter = (options: string): string =>
      writeBody(`{"stream_options":${options},"stream":true,"model":"a/b",${rest}`, { model: 'a/b', askUsage: true })
        .slice('{"stream_options":'.length)
        .replace(/,"stream":true.*/, '')
    expect(optionsAfter('null')).toBe('{"include_usage":true}')
    expect(optionsAfter('{}')).toBe('{"include_usage":true}')
    expect(optionsAfter('{"include_usage":false}')).toBe('{"include_usage":true}')
    expect(optionsAfter('{"include_usage":null,"x":1.0}')).toBe('{"include_usage":true,"x":1.0}')
    const nested = optionsAfter('{ "x" : {"include_usage":false} }')
    expect(JSON.parse(nested)).toEqual({ include_usage: true, x: { include_usage: false } })
    expect(optionsAfter('{"include_usage":true}')).toBe('{"include_usage":true}')
  })

  describe('with a cap of the gateway', () => {
    const capped = (fields: string, capField: OutputCapField = 'max_tokens'): string =>
      writeBody(`{${fields}"model":"a/b",${rest}`, { model: 'b', askUsage: true, capField, cap: 300 })

    test('as a new field that the upstream reads, if the caller has no cap', () => {
      expect(capped('')).toBe(`{"max_tokens":300,"model":"b",${rest}`)
      expect(capped('', 'max_completion_tokens')).toBe(`{"max_completion_tokens":300,"model":"b",${rest}`)
      expect(capped('"max_tokens": null ,')).toBe(`{"max_tokens": 300 ,"model":"b",${rest}`)
      expect(capped('"max_tokens":null,', 'max_completion_tokens')).toBe(
        `{"max_completion_tokens":300,"max_tokens":null,"model":"b",${rest}`,
      )
    })

    test("in the caller's own fields, and never above the caller's cap", () => {
      expect(capped('"max_tokens": 5000 ,', 'max_completion_tokens')).toBe(`{"max_tokens": 300 ,"model":"b",${rest}`)
      expect(capped('"max_completion_tokens":5e3,')).toBe(`{"max_completion_tokens":300,"model":"b",${rest}`)
      expect(capped('"max_tokens":5000,"max_completion_tokens":4000,')).toBe(
        `{"max_tokens":300,"max_completion_tokens":300,"model":"b",${rest}`,
      )
      expect(capped('"max_tokens":100,"max_completion_tokens":4000,')).toBe(
        `{"max_tokens":100,"max_completion_tokens":300,"model":"b",${rest}`,
      )
    })

    test('together with the option for usage', () => {
      const both = JSON.parse(capped('"stream":true,')) as object
      expect(both).toMatchObject({ max_tokens: 300, stream_options: { include_usage: true }, model: 'b', stream: true })
    })
  })

  test('without changing the original bytes', () => {
    const body = bytes(`{"stream":true,"model":"a/b",${rest}`)
    const before = Buffer.from(body)
    writeCall(readCall(body), { model: 'x', askUsage: true, capField: 'max_tokens' })
    expect(Buffer.from(body)).toEqual(before)
  })
})
