// Calls that are refused before anything goes upstream: media that the model cannot read or that may not be fetched, an
// output cap that is too high for the funds, and WebSockets.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { ask, bearer } from '../front/asking.ts'
import type { Harness } from '../support/gateway.ts'
import { loopback } from '../support/network-paths.ts'
import { rawRequest } from '../support/raw.ts'
import { startProviders } from './providers.ts'

let harness: Harness
let permissive: Harness
let key: string
let mediaServer: ReturnType<typeof Bun.serve>
const fetched: string[] = []

beforeAll(async () => {
  harness = await startProviders()
  permissive = await startProviders({ world: { media: { privateHosts: loopback } } })
  key = await harness.key({ credit: '10', qpm: 10_000 })
  mediaServer = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname } = new URL(request.url)
      fetched.push(pathname)
      const bytes = new Uint8Array(pathname.startsWith('/large') ? bounds.mediaBytesMax : 68)
      return new Response(bytes, { headers: { 'content-type': 'image/png' } })
    },
  })
})
afterAll(async () => {
  await mediaServer.stop(true)
  await harness.stop()
  await permissive.stop()
})

interface Result {
  readonly status: number
  readonly text: string
  readonly sent: number
}

async function post(at: Harness, path: string, json: object, apiKey = key): Promise<Result> {
  const before = at.upstream.requests.length
  const answer = await rawRequest(at.url, ask('POST', path, bearer(apiKey), JSON.stringify(json)))
  return { status: answer.status, text: answer.body.toString('utf8'), sent: at.upstream.requests.length - before }
}

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } }
const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } }
const words = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a river' } }
const message = (model: string, content: unknown) => ({ model, max_tokens: 10, messages: [{ role: 'user', content }] })
const chat = (model: string, content: unknown) => ({ model, messages: [{ role: 'user', content }] })
const dataUrl = { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } }

describe('media that a model does not read', () => {
  test.each([
    ['an image, natively', '/v1/messages', message('pond-anthropic/blind', [image]), 'images'],
    ['an image, translated', '/v1/messages', message('pond-chat/blind', [image]), 'images'],
    ['a document', '/v1/messages', message('pond-chat/blind', [pdf]), 'files'],
    ['an image in chat', '/v1/chat/completions', chat('pond-chat/blind', [dataUrl]), 'images'],
    [
      'a sound in Gemini',
      '/v1beta/models/lake-gemini/blind:generateContent',
      { contents: [{ parts: [{ inlineData: { mimeType: 'audio/wav', data: 'AAAA' } }] }] },
      'audio',
    ],
    [
      'an image in Responses',
      '/v1/responses',
      {
        model: 'lake-responses/blind',
        input: [{ role: 'user', content: [{ type: 'input_image', image_url: `data:image/png;base64,${pixel}` }] }],
      },
      'images',
    ],
  ])('are refused with their kind: %s', async (_, path, body, kind) => {
    const { status, text, sent } = await post(harness, path, body)
    expect([status, sent]).toEqual([400, 0])
    expect(text).toContain(`does not read ${kind}, only text.`)
    expect(harness.openHolds()).toBe(0)
  })

  test('do not include a text document, and pass for a model without known traits', async () => {
    expect(await post(harness, '/v1/messages', message('pond-anthropic/blind', [words]))).toMatchObject({ status: 200 })
    expect(await post(harness, '/v1/messages', message('pond-anthropic/echo', [image]))).toMatchObject({ status: 200 })
  })
})

describe('media by URL', () => {
  const at = (path: string) => ({
    type: 'image_url',
    image_url: { url: `http://127.0.0.1:${mediaServer.port}${path}` },
  })
  const requestOf = (paths: readonly string[]) => chat('lake-gemini/echo', paths.map(at))
  const path = '/v1/chat/completions'

  test('on a private host are not fetched', async () => {
    const before = fetched.length
    const { status, text, sent } = await post(harness, path, requestOf(['/a.png']))
    expect([status, sent, fetched.length]).toEqual([400, 0, before])
    expect(text).toContain('its host is not public')
  })

  test('on a permitted host are fetched once and put into the request', async () => {
    const apiKey = await permissive.key()
    const { status, sent } = await post(permissive, path, requestOf(['/a.png', '/b.png', '/a.png']), apiKey)
    expect([status, sent]).toEqual([200, 1])
    expect(JSON.stringify(permissive.upstream.requests.at(-1)!.json()).match(/"inlineData"/g)).toHaveLength(3)
    expect(fetched.filter(one => one === '/a.png')).toHaveLength(1)
  })

  test('are limited in number', async () => {
    const apiKey = await permissive.key()
    const before = fetched.length
    const many = Array.from({ length: bounds.mediaPerCallMax + 1 }, (_, index) => `/${index}.png`)
    const { status, text, sent } = await post(permissive, path, requestOf(many), apiKey)
    expect([status, sent, fetched.length]).toEqual([400, 0, before])
    expect(text).toContain(`more than ${bounds.mediaPerCallMax} addresses`)
    expect(await post(permissive, path, requestOf(many.slice(1)), apiKey)).toMatchObject({ status: 200, sent: 1 })
  })

  test('are limited in size, and the rest is not fetched', async () => {
    const apiKey = await permissive.key()
    const before = fetched.length
    const large = Array.from({ length: 20 }, (_, index) => `/large-${index}.png`)
    const { status, text, sent } = await post(permissive, path, requestOf(large), apiKey)
    expect([status, sent]).toEqual([400, 0])
    expect(text).toContain(`larger than ${bounds.mediaPerCallBytesMax} bytes`)
    expect(fetched.length - before).toBeLessThan(12)
  })
})

describe('a call of a key with strictCap that the funds do not cover', () => {
  test.each([
    ['/v1/messages', { ...message('pond-chat/echo', 'Hello'), max_tokens: 4_000 }, 'max_tokens'],
    ['/v1/chat/completions', chat('pond-chat/echo', 'Hello'), 'max_tokens'],
    ['/v1/responses', { model: 'pond-chat/echo', input: 'Hello' }, 'max_output_tokens'],
    [
      '/v1beta/models/pond-chat/echo:generateContent',
      { contents: [{ parts: [{ text: 'Hello' }] }] },
      'maxOutputTokens',
    ],
    ['/api/v3/chat/completions', chat('pond-chat/echo', 'Hello'), 'max_completion_tokens'],
  ])('at %s is refused with the cap that would fit', async (path, body, cap) => {
    const poor = await harness.key({ credit: '0.002' })
    await harness.weir('keys set', { 'key': poor, 'strict-cap': 'on' })
    const { status, text, sent } = await post(harness, path, body, poor)
    expect([status, sent]).toEqual([402, 0])
    expect(text).toMatch(new RegExp(`With ${cap} of at most \\d+ it would fit`))
  })
})

describe('a WebSocket', () => {
  const upgrade = {
    'connection': 'Upgrade',
    'upgrade': 'websocket',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-version': '13',
  }

  test.each([
    ['/v1/responses/input_tokens', { error: { type: 'invalid_request_error' } }],
    ['/v1/messages', { type: 'error' }],
    ['/v1beta/models/x/y:generateContent', { error: { code: 426 } }],
    ['/api/v3/responses', { error: { code: expect.any(String) } }],
  ])('at %s is refused in the dialect of the endpoint', async (path, body) => {
    const answer = await rawRequest(harness.url, ask('GET', path, { ...bearer(key), ...upgrade }))
    expect([answer.status, JSON.parse(answer.body.toString('utf8'))]).toMatchObject([426, body])
  })

  test('of a WebSocket client does not open', async () => {
    const url = `${harness.url.replace('http', 'ws')}/v1/realtime`
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` } } as never)
    const ended = await new Promise<string>(resolve => {
      socket.addEventListener('open', () => resolve('open'))
      socket.addEventListener('close', () => resolve('close'))
      socket.addEventListener('error', () => resolve('error'))
    })
    expect(ended).not.toBe('open')
  })
})
