// Headers do not pass through the gateway in either direction: outgoing headers are the gateway's own, a caller cannot
// choose a destination, and of the upstream's headers a caller sees the content type alone.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bytes, chunk, end, head, script } from '../../tools/fake-upstream/script.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, upstreamKey } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import { model, openRaw, startHasty } from './caller.ts'
import { goodStream } from './wire.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startHasty()
  key = await harness.key()
})
afterAll(() => harness.stop())

const callersHeaders = {
  'x-api-key': 'callers-own-1',
  'x-goog-api-key': 'callers-own-2',
  'api-key': 'callers-own-3',
  'cookie': 'session=callers-own-4',
  'proxy-authorization': 'Basic callers-own-5',
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-host': 'callers.example',
  'x-forwarded-proto': 'https',
  'forwarded': 'for=203.0.113.7',
  'via': '1.1 callers.example',
  'x-real-ip': '203.0.113.7',
  'openai-organization': 'org-callers',
  'openai-project': 'proj-callers',
  'openai-beta': 'assistants=callers',
  'idempotency-key': 'callers-own-6',
  'user-agent': 'callers/1.0',
  'accept': 'text/callers',
  'accept-encoding': 'gzip, br',
  'accept-language': 'x-callers',
  'origin': 'https://callers.example',
  'referer': 'https://callers.example/',
  'te': 'trailers',
  'x-stainless-lang': 'callers',
  'x-request-id': 'callers-own-7',
  'traceparent': '00-callers',
  'x-custom-callers': 'callers-own-8',
  'x-api-base': 'http://callers.example',
  'x-base-url': 'http://callers.example',
}

const sentHeaders = [
  ...['accept', 'accept-encoding', 'authorization', 'connection'],
  ...['content-length', 'content-type', 'host', 'user-agent'],
]

describe('an upstream', () => {
  test.each([false, true])("receives only the gateway's own headers (stream: %p)", async stream => {
    const body = JSON.stringify({ model, messages: hello, stream })
    const received = harness.upstream.nextRequest()
    const callerHeaders = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const headers = { ...callersHeaders, ...callerHeaders, 'idempotency-key': `callers-own-6-${stream}` }
    const caller = await openRaw(harness.url, post('/v1/chat/completions?key=x&callers=1', headers, body)).whole()
    expect(caller.status).toBe(200)
    const request = await received
    expect([...request.headers.keys()].sort()).toEqual(sentHeaders)
    expect(request.rawHead).not.toContain('callers')
    expect(request.rawHead).not.toContain('203.0.113.7')
    expect(request.rawHead).not.toContain(key)
    expect(request.path).toBe('/v1/chat/completions')
    expect(request.headers.get('host')).toBe(new URL(harness.upstream.url).host)
    expect(request.headers.get('authorization')).toBe(`Bearer ${upstreamKey}`)
    expect(request.headers.get('accept-encoding')).toBe('identity')
    expect(request.headers.get('content-length')).toBe(String(request.body.length))
  })

  test("receives neither the caller's charset nor its key in any header", async () => {
    const received = harness.upstream.nextRequest()
    const headers = { 'x-api-key': key, 'content-type': 'application/json; charset=utf-8' }
    const body = JSON.stringify({ model, messages: hello })
    await openRaw(harness.url, post('/v1/chat/completions', headers, body)).whole()
    expect((await received).headers.get('content-type')).toBe('application/json')
    expect((await received).rawHead).not.toContain(key)
  })

  test('is never chosen by a header of the caller', async () => {
    const otherUpstream = await startFakeUpstream()
    try {
      const fields = ['api_base', 'base_url', 'baseURL', 'api_url', 'endpoint', 'url', 'host', 'proxy', 'api_key']
      const body = { model, messages: hello, ...Object.fromEntries(fields.map(field => [field, otherUpstream.url])) }
      const headers = Object.fromEntries(
        ['x-api-base', 'x-base-url', 'x-upstream', 'x-target-url', 'x-forwarded-host'].map(name => [
          name,
          otherUpstream.url,
        ]),
      )
      const received = harness.upstream.nextRequest()
      expect((await chat(harness, key, body, headers)).status).toBe(200)
      expect((await received).json()).toEqual({ ...body, model: 'gpt-4o-mini' })
      expect(otherUpstream.requests).toEqual([])
      expect(otherUpstream.openSockets).toBe(0)
    } finally {
      await otherUpstream.stop()
    }
  })

  test.each(['openai/../../admin', 'openai/gpt-4o-mini?x=1', 'openai/gpt-4o#x', '127.0.0.1:9/m', '../x/y', '//h/m'])(
    'the model %s names no address',
    async name => {
      const before = harness.upstream.requests.length
      const response = await chat(harness, key, { model: name, messages: hello })
      expect([400, 404]).toContain(response.status)
      expect(harness.upstream.requests.length).toBe(before)
    },
  )
})

const upstreamsHeaders = {
  'set-cookie': 'a=upstreams',
  'server': 'upstreams',
  'x-ratelimit-limit-requests': '77777',
  'x-ratelimit-remaining-tokens': '77777',
  'x-ratelimit-reset-tokens': '7s',
  'openai-organization': 'org-upstreams',
  'openai-processing-ms': '77777',
  'openai-version': 'upstreams',
  'x-request-id': 'req-upstreams',
  'request-id': 'req-upstreams',
  'x-should-retry': 'true',
  'retry-after': '77',
  'cf-ray': 'upstreams',
  'via': '1.1 upstreams',
  'location': 'http://upstreams.example',
  'www-authenticate': 'Bearer realm="upstreams"',
  'access-control-allow-origin': 'https://upstreams.example',
  'content-security-policy': 'upstreams',
  'strict-transport-security': 'upstreams',
  'x-pipeline-route': 'upstreams',
  'x-upstreams': 'upstreams',
  'alt-svc': 'h3=":443"',
  'trailer': 'x-upstreams',
}

describe('a caller', () => {
  const body = '{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}'
  const ownHeaders = [
    ...['content-type', 'date', 'request-id', 'x-request-id'],
    ...['x-pipeline-adapter', 'x-pipeline-auth', 'x-pipeline-breakdown', 'x-pipeline-ratelimit', 'x-pipeline-route'],
    ...['x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
    'x-weir-attempts',
  ]
  const plainHead = { 'content-type': 'application/json', 'content-length': String(body.length) }
  const chunked = { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }
  const rows = [
    [
      'a plain answer',
      false,
      200,
      script(head(200, { ...plainHead, ...upstreamsHeaders }), bytes(body), end),
      ['content-length'],
    ],
    [
      'a stream',
      true,
      200,
      script(head(200, { ...chunked, ...upstreamsHeaders }), chunk(goodStream), end),
      ['cache-control', 'transfer-encoding', 'x-accel-buffering'],
    ],
    [
      'a refusal',
      false,
      422,
      script(head(422, { ...plainHead, ...upstreamsHeaders }), bytes(body), end),
      ['content-length'],
    ],
  ] as const

  test.each(rows)('receives no upstream header of %s', async (_name, stream, status, planned, more) => {
    harness.upstream.plan(planned)
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const sent = post('/v1/chat/completions', headers, JSON.stringify({ model, messages: hello, stream }))
    const caller = await openRaw(harness.url, sent).whole()
    expect(caller.status).toBe(status)
    const names = caller.head
      .split('\r\n')
      .slice(1)
      .map(line => line.slice(0, line.indexOf(':')).toLowerCase())
    expect(names.sort()).toEqual([...ownHeaders, ...more].sort())
    expect(caller.head).not.toMatch(/upstreams|\b77777\b/)
  })
})
