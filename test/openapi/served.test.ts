// The documentation that a gateway serves: cached, safe to open in a browser, and true for the running gateway.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { misfits } from '../support/json-schema.ts'
import { answerOf, document, findSchema, operations } from './described.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startHarness()
  key = await harness.key()
})
afterAll(() => harness.stop())

const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
  fetch(`${harness.url}${path}`, { method, headers })

const pages = ['models', 'providers', 'pricing', 'settings'].map(name => `/api/public/${name}`)
const documents = ['/openapi.json', '/weir.schema.json', '/docs', '/llms.txt', '/']

describe('public pages:', () => {
  test.each([...pages, ...documents])('%s is not sent again to a reader who has it', async path => {
    const first = await get(path)
    const etag = first.headers.get('etag')!
    expect([first.status, first.headers.get('cache-control')]).toEqual([200, 'public, no-cache'])
    expect(etag).toMatch(/^"[\w-]{27}"$/)
    const body = await first.text()
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const cached = await get(path, { 'if-none-match': known })
      expect([known, cached.status, await cached.text(), cached.headers.get('etag')]).toEqual([known, 304, '', etag])
    }
    for (const etagOfOther of ['"x"', `${etag}x`, '']) {
      expect((await get(path, { 'if-none-match': etagOfOther })).status).toBe(200)
    }
    const head = await get(path, {}, 'HEAD')
    expect([head.status, await head.text(), head.headers.get('etag')]).toEqual([200, '', etag])
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(body)))
    expect((await get(path, {}, 'POST')).status).toBe(405)
  })

  test('the document is described in itself, with the same texts', async () => {
    expect(await (await get('/openapi.json')).json()).toEqual(document)
  })

  test('the start page says on one screen what to do', async () => {
    const text = await (await get('/llms.txt')).text()
    expect(text.split('\n').length).toBeLessThan(45)
    for (const word of ['/v1/chat/completions', 'Authorization: Bearer', '/api/web', '/openapi.json', '/docs']) {
      expect(text).toContain(word)
    }
    for (const [, path] of text.matchAll(/`(?:GET|POST) ([^`]+)`/g)) {
      expect([path, Object.keys(document.paths).includes(path!)]).toEqual([path, true])
    }
    expect(await (await get('/')).text()).toContain('/docs')
  })
})

describe('the page of the document', () => {
  test('shows every operation, runs nothing and loads nothing', async () => {
    const response = await get('/docs')
    const html = await response.text()
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = response.headers.get('content-security-policy')!
    const style = /<style>([^]*?)<\/style>/.exec(html)![1]!
    const hash = createHash('sha256').update(style).digest('base64')
    expect(policy).toStartWith(`default-src 'none'; style-src 'sha256-${hash}'; img-src data:;`)
    for (const loads of [/<script/i, /\son\w+=/i, /\sstyle=/i, /(src|href)="(?!#|\/|data:)/i, /@import|url\(/i]) {
      expect([loads.source, loads.test(html)]).toEqual([loads.source, false])
    }
    for (const { operation } of operations) expect(html).toContain(`id="${operation.operationId}"`)
    for (const [, anchor] of html.matchAll(/href="#([^"]+)"/g)) {
      expect([anchor, html.includes(`id="${anchor!}"`)]).toEqual([anchor, true])
    }
  })
})

describe('public data', () => {
  test.each(pages)('%s is as described', async path => {
    const { operation } = operations.find(one => one.path === path)!
    const response = answerOf(operation, 200)!.content!['application/json']!
    const body = await (await get(path)).json()
    expect(misfits(body, response.schema, findSchema)).toEqual([])
  })

  test.each([
    '/v1/models',
    '/v1/models/demo/echo',
    '/v1beta/models',
    '/v1beta/models/demo/echo',
    '/api/v3/models',
    '/v1/key',
  ])('for a key: %s is as described', async path => {
    const described = path.replace('/demo/echo', '/{model}')
    const { operation } = operations.find(one => one.path === described && one.method === 'GET')!
    const response = answerOf(operation, 200)!.content!['application/json']!
    const body = await (await get(path, { authorization: `Bearer ${key}` })).json()
    expect(misfits(body, response.schema, findSchema)).toEqual([])
  })

  test('of an unknown tier is a 404', async () => {
    expect((await get('/api/public/pricing?tier=pro')).status).toBe(200)
    const answer = await get('/api/public/pricing?tier=lead')
    expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual([
      ...[404, 'resource_unknown'],
    ] as never)
  })
})

describe('every example of a call is accepted:', () => {
  const examples = operations.flatMap(({ name, path, operation }) => {
    const [scheme] = operation.security
    const json = operation.requestBody?.content['application/json']
    if (scheme === undefined || !('key' in scheme) || json?.examples === undefined) return []
    return Object.values(json.examples).map(({ value }) => [name, path, value, operation] as const)
  })

  test.each(examples)('%s', async (_name, path, value, operation) => {
    const response = await fetch(`${harness.url}${path.replace('{model}', 'demo/echo').replace('{id}', 'resp_1')}`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(value),
    })
    const { model } = value as { model?: string }
    const reaches = model === undefined ? !path.includes('mbed') : model.startsWith('demo/')
    const text = await response.text()
    expect([response.status, text]).toEqual([reaches ? 200 : expect.any(Number), expect.any(String)] as never)
    const described = answerOf(operation, response.status)
    expect([response.status, described !== undefined]).toEqual([response.status, true])
    const type = response.headers.get('content-type')!.split(';')[0]!
    const content = described!.content![type]
    expect([type, content !== undefined]).toEqual([type, true])
    if (type === 'application/json') expect(misfits(JSON.parse(text), content!.schema, findSchema)).toEqual([])
    for (const header of Object.keys(described!.headers ?? {}).filter(name => name.startsWith('X-Pipeline'))) {
      if (response.status === 200) expect([header, response.headers.has(header)]).toEqual([header, true])
    }
  })
})
