// The HTTP front: each path prefix refuses requests without a key in its own dialect, browsers get CORS headers, and
// unsupported requests are refused with a message.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import type { Headers } from './asking.ts'
import { ask, bearer, CHAT, call, expectChatError, expectRequestId, expectStages, goodBody, reached } from './asking.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startHarness({ env: { WEIR_AUDIT_SECONDS: '0' } }) // the health shows when the ledger was audited
  key = await harness.key()
})
afterAll(() => harness.stop())

const raw = (request: Uint8Array): Promise<RawAnswer> => rawRequest(harness.url, request)
const jsonOf = (answer: RawAnswer): unknown => JSON.parse(answer.body.toString('utf8'))
const some = expect.any(String) as string

/** The whole body of an error in each dialect. */
const dialects: Record<string, (answer: RawAnswer, type: string) => unknown> = {
  'openai': (answer, type) => ({
    error: { message: some, type, param: null, code: some },
    request_id: answer.header('request-id'),
  }),
  'anthropic': (answer, type) => ({
    type: 'error',
    error: { type, message: some },
    request_id: answer.header('request-id'),
  }),
  'gemini': (answer, status) => ({
    error: {
      code: answer.status,
      message: some,
      status,
      type: answer.status === 401 ? 'authentication_error' : some,
      details: [{ '@type': 'type.googleapis.com/google.rpc.RequestInfo', requestId: answer.header('request-id') }],
    },
  }),
  'ark': (answer, type) => ({
    error: { code: some, message: some, param: '', type },
    request_id: answer.header('request-id'),
  }),
}

describe('each path prefix answers in its dialect:', () => {
  const anthropic = ['anthropic', 'authentication_error', 'not_found_error'] as const
  const openai = ['openai', 'authentication_error', 'invalid_request_error'] as const
  const gemini = ['gemini', 'UNAUTHENTICATED', 'NOT_FOUND'] as const
  const ark = ['ark', 'authentication_error', 'NotFound'] as const
  const paths = [
    ['/v1/messages/batches', ...anthropic],
    ['/v1/messages/nothing', ...anthropic],
    ['/v1/responses/resp_1/nothing', ...openai],
    ['/v1/nothing', ...openai],
    ['/v1', ...openai],
    ['/v1/messagesx', ...openai],
    ['/v1beta/models/openai%2Fgpt-4o-mini:predict', ...gemini],
    ['/v1beta/nothing', ...gemini],
    ['/v1beta/openai/nothing', ...openai],
    ['/api/v3/nothing', ...ark],
    ['/api/v3/contents/nothing', ...ark],
  ] as const

  test.each(paths)('%s in %s', async (path, dialect, unauthenticated, notFound) => {
    const anonymous = await raw(ask('POST', path, {}, '{}'))
    expect([anonymous.status, jsonOf(anonymous)]).toEqual([401, dialects[dialect]!(anonymous, unauthenticated)])
    expectStages(anonymous, reached.refusedKey)
    const known = await raw(ask('POST', path, bearer(key), '{}'))
    expect([known.status, jsonOf(known)]).toEqual([404, dialects[dialect]!(known, notFound)])
    expectStages(known, reached.nothing)
    for (const answer of [anonymous, known]) {
      expectRequestId(answer)
      expect(answer.header('content-type')).toStartWith('application/json')
    }
  })

  test('a 401 has the message and the type of the specification in every dialect', async () => {
    for (const [path] of paths) {
      const { error } = jsonOf(await raw(ask('POST', path, bearer('wk-nonsense'), '{}'))) as { error: object }
      expect(error).toMatchObject({ message: some, type: 'authentication_error' })
    }
  })

  test('a wrong method with a valid key is 405 with Allow', async () => {
    const call = await raw(ask('GET', CHAT, bearer(key)))
    expect(expectChatError(call, 405).error.code).toBe('method_not_allowed')
    expect(call.header('allow')).toBe('POST')
    expectChatError(await raw(ask('GET', CHAT)), 401)
    const list = await raw(ask('POST', '/v1/models', {}, '{}'))
    expectChatError(list, 405)
    expect(list.header('allow')).toBe('GET')
  })

  test('/api/web/* is 401 without a token, whatever the path and the method', async () => {
    for (const [method, path] of [
      ['GET', 'me'],
      ['POST', 'me'],
      ['GET', 'nothing'],
      ['DELETE', 'keys/1'],
    ] as const) {
      const answer = await raw(ask(method, `/api/web/${path}`))
      expect(expectChatError(answer, 401).error.code).toBe('token_invalid')
      const securityHeaders = ['cache-control', 'x-content-type-options'].map(name => answer.header(name))
      expect(securityHeaders).toEqual(['no-store', 'nosniff'])
    }
    const token = String((await harness.weir('token')).token)
    expectChatError(await raw(ask('GET', '/api/web/nothing', bearer(token))), 404)
    expectChatError(await raw(ask('DELETE', '/api/web/me', bearer(token))), 405)
  })

  test.each([
    ['HTTP/1.0 without a host', 'HTTP/1.0', ''],
    ['an empty host', 'HTTP/1.1', 'Host:\r\n'],
    ['a host that cannot be in a URL', 'HTTP/1.1', 'Host: a b\r\n'],
    ['a host with a path', 'HTTP/1.1', 'Host: x/api/web/me?\r\n'],
  ])('a path means the same with %s', async (_, version, host) => {
    const get = (path: string): Promise<RawAnswer> => raw(Buffer.from(`GET ${path} ${version}\r\n${host}\r\n`))
    expect((await get('/health/live')).status).toBe(200)
    expect((await get('/v1/models?limit=1')).status).toBe(200)
    expect((await get('/api/web/me')).status).toBe(401)
    expect((await get('/v1/nothing')).status).toBe(401)
    // A proxy that lets only some paths pass reads the whole path.
    for (const path of ['/x/api/web/me', '/x/health/live']) expectChatError(await get(path), 404)
  })

  test('a path outside of every prefix is 404', async () => {
    for (const path of ['/nothing', '/v2/chat/completions', '/api', '/.env', '/v1x/models', '/index.html']) {
      expectChatError(await raw(ask('GET', path)), 404)
    }
  })
})

describe('public endpoints', () => {
  const paths = ['models', 'providers', 'pricing', 'settings'].map(name => `/api/public/${name}`)
  test.each(['/v1/models', ...paths])('include %s, which answers even with a wrong key', async path => {
    for (const headers of [{}, bearer('wk-nonsense'), bearer(key)]) {
      const answer = await raw(ask('GET', path, headers))
      expect(answer.status).toBe(200)
      expect(answer.header('content-type')).toBe('application/json')
      expect(typeof jsonOf(answer)).toBe('object')
    }
  })

  test('include the health endpoints', async () => {
    expect(jsonOf(await raw(ask('GET', '/health/live')))).toEqual({ status: 'live' })
    const ledger = { drift: 0, auditedMs: null }
    expect(jsonOf(await raw(ask('GET', '/health/ready')))).toEqual({ status: 'ready', overload: 0, ledger })
  })

  test('answer HEAD like GET without a body', async () => {
    for (const path of ['/', '/v1/models', '/health/live', '/api/public/settings']) {
      const answer = await fetch(harness.url + path, { method: 'HEAD' })
      expect([path, answer.status, await answer.text()]).toEqual([path, 200, ''])
      expect(answer.headers.get('x-request-id')).toBe(answer.headers.get('request-id'))
    }
    expect((await fetch(`${harness.url}/nothing`, { method: 'HEAD' })).status).toBe(404)
  })
})

describe('a WebSocket', () => {
  const upgrade: Headers = {
    'connection': 'Upgrade',
    'upgrade': 'websocket',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-version': '13',
  }

  test.each(['/v1/responses/resp_1', CHAT, '/v1/realtime'])(
    'on %s is refused with a message, after the key was checked',
    async path => {
      const answer = await raw(ask('GET', path, { ...upgrade, ...bearer(key) }))
      expect(expectChatError(answer, 426).error.code).toBe('upgrade_refused')
      const anonymous = await raw(ask('GET', path, upgrade))
      expectChatError(anonymous, 401)
      expectStages(anonymous, reached.refusedKey)
    },
  )

  test('on other paths is refused too', async () => {
    for (const path of ['/', '/v1/models', '/nothing']) expectChatError(await raw(ask('GET', path, upgrade)), 426)
  })
})

describe('a browser of another origin', () => {
  const origin = { origin: 'https://app.example' }
  const preflight = {
    ...origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  }
  const llmPaths = [
    ...[CHAT, '/v1/messages', '/v1/responses', '/v1/models', '/api/v3/x', '/api/public/models'],
    '/v1beta/models/x:generateContent',
  ]

  test.each(llmPaths)('may send a preflight for %s without a key', async path => {
    const answer = await raw(ask('OPTIONS', path, { ...preflight, connection: 'close' }))
    expect(answer.status).toBe(204)
    expect(answer.header('access-control-allow-origin')).toBe('*')
    expect(answer.header('access-control-allow-headers')).toBe('authorization,content-type')
    expect(answer.header('access-control-allow-methods')).toContain('POST')
    expect(answer.header('access-control-allow-credentials')).toBeUndefined()
    expectStages(answer, reached.nothing)
  })

  test('gets a request id for a preflight too', async () => {
    expectRequestId(await raw(ask('OPTIONS', CHAT, { ...preflight, connection: 'close' })))
  })

  test('may read the headers of a call: completed, streamed, refused and unknown', async () => {
    const answers = [
      await call(harness, key, goodBody(), origin),
      await call(harness, key, goodBody({ stream: true }), origin),
      await call(harness, 'wk-nonsense', goodBody(), origin),
      await call(harness, key, '{', origin),
      await raw(ask('POST', '/v1/nothing', { ...bearer(key), ...origin }, '{}')),
    ]
    expect(answers.map(answer => answer.status)).toEqual([200, 200, 401, 400, 404])
    for (const answer of answers) {
      expect(answer.header('access-control-allow-origin')).toBe('*')
      const exposed = answer.header('access-control-expose-headers')!.toLowerCase().split(', ')
      const callHeaders = answer.headerNames
        .map(name => name.toLowerCase())
        .filter(name => /^x-|request-id|^retry/.test(name))
      expect(callHeaders.filter(name => !exposed.includes(name) && name !== 'x-accel-buffering')).toEqual([])
    }
  })

  test.each(['/api/web/me', '/health/live', '/', '/nothing'])('may not read %s', async path => {
    for (const request of [ask('OPTIONS', path, preflight), ask('GET', path, origin)]) {
      const answer = await raw(request)
      expect(answer.headerNames.filter(name => /^access-control-/i.test(name))).toEqual([])
    }
  })

  test('has an Origin header; a request without one gets no CORS headers', async () => {
    const answer = await call(harness, key)
    expect(answer.headerNames.filter(name => /^access-control-/i.test(name))).toEqual([])
  })
})
