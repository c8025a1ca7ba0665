// Bad input, row by row: the right status, the dialect's error with the request id, the headers of the stages that
// were reached, nothing charged, nothing held, and a gateway that answers the next call.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mintKey } from '../../src/identity/key-format.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, startHarness } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import type { Headers } from './asking.ts'
import { ask, bearer, CHAT, call, expectChatError, expectStages, goodBody, lines, MODEL, reached } from './asking.ts'

let harness: Harness
let key: string
let revoked: string

beforeAll(async () => {
  harness = await startHarness()
  key = await harness.key()
  revoked = await harness.key()
  await harness.weir('keys revoke', { key: revoked })
})
afterAll(() => harness.stop())

interface Row {
  readonly method?: string
  readonly path?: string
  /** Without this function the valid key is sent. */
  readonly headers?: () => Headers
  readonly body?: string | Uint8Array
  readonly status: number
  readonly code: string
  readonly stages?: readonly string[]
}

async function send(row: Row): Promise<RawAnswer> {
  const headers = { ...bearer(key), ...row.headers?.() }
  return await rawRequest(harness.url, ask(row.method ?? 'POST', row.path ?? CHAT, headers, row.body))
}

function check(rows: Readonly<Record<string, Row>>): void {
  test.each(Object.entries(rows))('%s', async (_, row) => {
    const [forwarded, funds] = [harness.upstream.requests.length, await harness.balance(key)]
    const answer = await send(row)
    expect(expectChatError(answer, row.status).error.code).toBe(row.code)
    expectStages(answer, row.stages ?? reached.authenticated)
    expect(harness.upstream.requests.length).toBe(forwarded)
    expect(await harness.balance(key)).toEqual(funds)
    expect(harness.openHolds()).toBe(0)
    // The gateway still serves calls.
    const next = await call(harness, await harness.key())
    expect(next.status).toBe(200)
  })
}

const text = (json: string): Row => ({ body: json, status: 400, code: 'json_invalid' })
const field = (more: object, code = 'field_invalid'): Row => ({ body: goodBody(more), status: 400, code })
const messages = JSON.stringify(hello)

describe('the key', () => {
  const refusedKey = { body: goodBody(), status: 401, code: 'invalid_api_key', stages: reached.refusedKey }
  check({
    'none': { ...refusedKey, headers: () => ({ authorization: '' }) },
    'an empty bearer': { ...refusedKey, headers: () => ({ authorization: 'Bearer' }) },
    'a wrong checksum': { ...refusedKey, headers: () => bearer(`${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`) },
    'too short': { ...refusedKey, headers: () => bearer('wk-') },
    'too long': { ...refusedKey, headers: () => bearer(`${key}0`) },
    'never issued': { ...refusedKey, headers: () => bearer(mintKey()) },
    'revoked': { ...refusedKey, headers: () => bearer(revoked) },
    'two, the first of them revoked': { ...refusedKey, headers: () => ({ ...bearer(revoked), 'x-api-key': key }) },
    'two in one header': { ...refusedKey, headers: () => ({ authorization: `Bearer ${key}, Bearer ${key}` }) },
    'bytes beyond ASCII': { ...refusedKey, headers: () => bearer(`wk-${'\xe9'.repeat(36)}`) },
    'on a body that is no JSON': { ...refusedKey, headers: () => bearer(revoked), body: '{' },
  })
})

describe('a body that is not a JSON object', () => {
  const notObject = (body: string): Row => ({ body, status: 400, code: 'body_not_object' })
  const deep = '['.repeat(1_000_000)
  const tooDeep = (body: string): Row => ({ body, status: 400, code: 'json_too_deep' })
  check({
    'empty': text(''),
    'blank': text(' \n'),
    'words': text('hello'),
    'cut off': text(goodBody().slice(0, -1)),
    'something behind it': text(`${goodBody()}}`),
    'two of them': text(goodBody() + goodBody()),
    'a byte order mark before it': text(`\ufeff${goodBody()}`),
    'single quotes': text(goodBody().replaceAll('"', "'")),
    'NaN': text(`{"model":"${MODEL}","messages":${messages},"temperature":NaN}`),
    'a trailing comma': text(`{"model":"${MODEL}","messages":${messages},}`),
    'a raw line feed in a string': text(`{"model":"${MODEL}","messages":[{"role":"user","content":"a\nb"}]}`),
    '[]': notObject('[]'),
    'null': notObject('null'),
    'a number': notObject('5'),
    'a string': notObject('"hello"'),
    'an object in a list': notObject(`[${goodBody()}]`),
    'a million lists': tooDeep(deep),
    'a million lists, closed': tooDeep(deep + ']'.repeat(1_000_000)),
    'a million lists as messages': tooDeep(`{"model":"${MODEL}","messages":${deep}`),
    'a million objects': tooDeep(`{"model":"${MODEL}","messages":${messages},"x":${'{"a":'.repeat(1_000_000)}`),
    'a million lists behind a string with brackets': tooDeep(`{"a":"[[[\\"]","b":${deep}`),
  })
})

describe('the bytes of a body', () => {
  const [before, after] = goodBody({ messages: [{ role: 'user', content: '@' }] }).split('@') as [string, string]
  const withContent = (content: Uint8Array | string): Buffer =>
    Buffer.concat([Buffer.from(before), Buffer.from(content), Buffer.from(after)])
  const bytes = (content: Uint8Array | string): Row => ({ ...text(''), body: withContent(content) })
  check({
    'no UTF-8': bytes(Uint8Array.of(0xff, 0xfe)),
    'a character cut off': bytes(Uint8Array.of(0xe2, 0x86)),
    'an overlong slash': bytes(Uint8Array.of(0xc0, 0xaf)),
    'a surrogate in UTF-8': bytes(Uint8Array.of(0xed, 0xa0, 0x80)),
    'beyond Unicode': bytes(Uint8Array.of(0xf4, 0x90, 0x80, 0x80)),
    'UTF-16': { ...text(''), body: Buffer.from(goodBody(), 'utf16le') },
    'half a surrogate pair': bytes('\\ud800'),
    'the other half': bytes('\\udc00'),
    'both halves, the wrong way round': bytes('\\udc00\\ud800'),
    'half a pair as the name of a field': text(`{"\\ud800":1,"model":"${MODEL}","messages":${messages}}`),
  })

  test('a complete surrogate pair is a character and passes unchanged', async () => {
    const body = withContent('\\ud83d\\ude00 \\\\ud800').toString()
    const answer = await call(harness, await harness.key(), body)
    expect(answer.status).toBe(200)
    expect(harness.upstream.requests.at(-1)!.body.toString()).toContain('"\\ud83d\\ude00 \\\\ud800"')
  })
})

describe('the fields of a body', () => {
  const twice = (json: string): Row => ({ body: json, status: 400, code: 'field_duplicate' })
  check({
    'no model': field({ model: undefined }, 'field_missing'),
    'null for a model': field({ model: null }, 'field_missing'),
    '"model": 5': field({ model: 5 }),
    'a list of models': field({ model: [MODEL] }),
    'no messages': field({ messages: undefined }, 'field_missing'),
    'empty messages': field({ messages: [] }),
    'messages as an object': field({ messages: { role: 'user', content: 'x' } }),
    'messages as a string': field({ messages: 'hello' }),
    'a message that is null': field({ messages: [null] }),
    'a message that is a list': field({ messages: [[]] }),
    'a message without a role': field({ messages: [{ content: 'x' }] }),
    'a role that is a number': field({ messages: [...hello, { role: 5, content: 'x' }] }),
    'stream as a string': field({ stream: 'true' }),
    'stream_options as a list': field({ stream: true, stream_options: [] }),
    'n of 0': field({ n: 0 }),
    'n of a million': field({ n: 1_000_000 }),
    'n of a billion': field({ n: 1_000_000_000 }),
    'n as a string': field({ n: '2' }),
    'n of one and a half': field({ n: 1.5 }),
    'max_tokens below 0': field({ max_tokens: -1 }),
    'max_tokens as a string': field({ max_tokens: '5' }),
    'max_tokens of 1e309': { ...field({}), body: goodBody({ max_tokens: 309 }).replace('309', '1e309') },
    'max_tokens of -1e309': { ...field({}), body: goodBody({ max_tokens: 309 }).replace('309', '-1e309') },
    'max_tokens of 2^53 + 1': { ...field({}), body: goodBody({ max_tokens: 53 }).replace('53', '9007199254740993') },
    'max_tokens of 2^64': { ...field({}), body: goodBody({ max_tokens: 64 }).replace('64', '18446744073709551616') },
    'max_tokens of half a token': field({ max_tokens: 0.5 }),
    'max_completion_tokens below 0': field({ max_completion_tokens: -9007199254740993 }),
    'one good cap, one bad': field({ max_tokens: 5, max_completion_tokens: '5' }),
    'service_tier as a list': field({ service_tier: ['flex'] }),
    'max_completion_tokens beyond reason': field({ max_completion_tokens: 1e300 }),
    'model twice': twice(`{"model":"${MODEL}","messages":${messages},"model":"demo/echo"}`),
    'model twice, once in escapes': twice(`{"model":"${MODEL}","messages":${messages},"mod\\u0065l":"demo/echo"}`),
    'messages twice': twice(`{"model":"${MODEL}","messages":${messages},"messages":${messages}}`),
    'stream twice': twice(`{"model":"${MODEL}","messages":${messages},"stream":false,"stream":true}`),
    'tools twice': twice(`{"model":"${MODEL}","messages":${messages},"tools":[],"tools":[{"type":"search"}]}`),
    'max_tokens twice': twice(`{"model":"${MODEL}","messages":${messages},"max_tokens":1,"max_tokens":9}`),
    'everything inside __proto__': {
      body: `{"__proto__":{"model":"${MODEL}","messages":${messages}}}`,
      status: 400,
      code: 'field_missing',
    },
    'messages that are __proto__': {
      body: `{"model":"${MODEL}","messages":{"__proto__":[{"role":"user"}],"length":1}}`,
      status: 400,
      code: 'field_invalid',
    },
  })

  test('the error names the wrong field', async () => {
    for (const [more, param] of [
      [{ model: 5 }, 'model'],
      [{ messages: [] }, 'messages'],
      [{ n: 0 }, 'n'],
    ] as const) {
      const answer = await call(harness, key, goodBody(more))
      expect(expectChatError(answer, 400).error.param).toBe(param)
    }
  })

  test('a field called __proto__ passes like any other and changes nothing in the gateway', async () => {
    const body = `{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},${goodBody().slice(1)}`
    const answer = await call(harness, await harness.key(), body)
    expect(answer.status).toBe(200)
    expect(harness.upstream.requests.at(-1)!.body.toString()).toContain('"__proto__":{"polluted":true}')
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })
})

describe('a model name', () => {
  const unknown = (model: string): Row => ({
    body: goodBody({ model }),
    status: 404,
    code: 'model_not_found',
    stages: reached.unrouted,
  })
  const malformed = (model: string): Row => ({ body: goodBody({ model }), status: 400, code: 'model_malformed' })
  check({
    'without a provider': unknown('gpt-9000'),
    'empty': malformed(''),
    'a slash alone': malformed('/'),
    'no provider': malformed('/gpt-4o-mini'),
    'no model': malformed('openai/'),
    'a blank in it': malformed('openai/gpt 4o'),
    'a line feed in it, as for a header': malformed('openai/x\r\nX-Injected: 1'),
    'a character beyond ASCII': malformed('openai/→'),
    'longer than any': malformed(`openai/${'x'.repeat(1_000)}`),
    'an unknown provider': unknown('nobody/gpt-4o-mini'),
    'an unknown model': unknown('openai/gpt-9000'),
    'a provider called __proto__': unknown('__proto__/x'),
    'a provider called constructor': unknown('constructor/name'),
    'a model called __proto__': unknown('openai/__proto__'),
    'an address for a provider': unknown('http://127.0.0.1:1/x'),
    'a way out of the folder': unknown('../openai/gpt-4o-mini'),
    'of a provider without a channel': {
      ...unknown('groq/llama-3.3-70b-versatile'),
      status: 503,
      code: 'no_channel',
    },
  })
})

describe('a request head', () => {
  const typeless = { body: goodBody(), status: 415, code: 'content_type_unsupported' }
  const unknownPath = (path: string, stages: readonly string[] = reached.nothing): Row => ({
    path,
    body: goodBody(),
    status: 404,
    code: 'path_unknown',
    stages,
  })
  const wrongMethod = (method: string): Row => ({
    method,
    status: 405,
    code: 'method_not_allowed',
    stages: reached.authenticated,
  })
  const tooLarge = { body: goodBody(), status: 431, code: 'head_too_large', stages: reached.authenticated }
  check({
    'no Content-Type': { ...typeless, headers: () => ({ 'content-type': '' }) },
    'a form': { ...typeless, headers: () => ({ 'content-type': 'application/x-www-form-urlencoded' }) },
    'text': { ...typeless, headers: () => ({ 'content-type': 'text/plain' }) },
    'nearly JSON': { ...typeless, headers: () => ({ 'content-type': 'application/jsonp' }) },
    'no body at all': { status: 415, code: 'content_type_unsupported' },
    'GET': wrongMethod('GET'),
    'PUT': wrongMethod('PUT'),
    'DELETE': wrongMethod('DELETE'),
    'PATCH': wrongMethod('PATCH'),
    'OPTIONS without a preflight': wrongMethod('OPTIONS'),
    'an unknown path': unknownPath('/v1/chat/completion'),
    'a path below': unknownPath('/v1/chat/completions/x'),
    'a slash too many inside': unknownPath('/v1/chat//completions'),
    'in capitals': unknownPath('/v1/Chat/Completions'),
    'an encoded slash that doubles': unknownPath('/v1/chat%2F/completions'),
    '%2e%2e out of the prefix': unknownPath('/v1/chat/completions/%2e%2e/%2e%2e/%2e%2e/etc/passwd'),
    '%2e%2e behind an encoded slash': unknownPath('/v1/x%2f%2e%2e%2fchat/completions'),
    'a broken escape': unknownPath('/v1/%zz'),
    'no UTF-8 in an escape': unknownPath('/v1/%ff%fe'),
    'a NUL': unknownPath('/v1/chat/completions%00'),
    'a header of 100 KB': { ...tooLarge, headers: () => ({ 'x-large': 'a'.repeat(100_000) }) },
    'many headers': {
      ...tooLarge,
      headers: () => Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`x-${n}`, 'a'.repeat(300)])),
    },
    'a key of 100 KB': {
      body: goodBody(),
      status: 401,
      code: 'invalid_api_key',
      stages: reached.refusedKey,
      headers: () => bearer(`wk-${'a'.repeat(100_000)}`),
    },
    'a query of 100 KB': { ...tooLarge, path: `${CHAT}?x=${'a'.repeat(100_000)}` },
  })

  test('of a wrong method gets Allow with the right method', async () => {
    const answer = await send(wrongMethod('GET'))
    expect(answer.header('allow')).toBe('POST')
  })

  test("with %2e%2e in its path leads to the resolved path, and to that path's authentication", async () => {
    const web = await rawRequest(harness.url, ask('GET', '/api/public/%2e%2e/web/me', bearer(key)))
    expect(expectChatError(web, 401, ['hint']).error.code).toBe('token_invalid')
    const chat = await rawRequest(harness.url, ask('POST', '/health/%2e%2e/v1/chat/completions', {}, goodBody()))
    expectChatError(chat, 401)
    expectStages(chat, [lines.authFail()])
  })

  test('may have headers that are named like properties of JavaScript objects', async () => {
    const headers = { '__proto__': 'x', 'constructor': 'y', 'hasownproperty': 'z', 'tojson': 'w' }
    const named = Object.defineProperty({ ...headers }, '__proto__', { value: 'x', enumerable: true }) as Headers
    const answer = await call(harness, await harness.key(), goodBody(), named)
    expect(answer.status).toBe(200)
  })
})
