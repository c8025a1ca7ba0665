// Tests the references in large bodies, which another thread has found, and how much work the search may be.

import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import type { RequestHead } from '../protocol.ts'
import { protocols } from '../protocols.ts'
import { tokenCountDialects } from '../token-counts/count-dialects.ts'
import { cacheParsedBody, parseBody } from './json-body.ts'
import { findReferences, getCachedReferences, isStoredAtGoogle, plainHost } from './references.ts'

const pad = 'x'.repeat(70_000)
const headFor = (path: string): RequestHead => ({ path, header: () => undefined, query: () => null })

describe('references of a large body are not searched again:', () => {
  const message = { role: 'user', content: [{ type: 'text', text: pad }, { file_id: 'file-1' }] }
  const contents = [{ role: 'user', parts: [{ text: pad }, { fileData: { fileUri: 'files/1' } }] }]
  const request = { model: 'a/b', max_tokens: 1, messages: [message] }
  const count = '/v1beta/models/a/b:countTokens'
  const rows = [
    ['openai-chat', request, '/v1/chat/completions', protocols['openai-chat'].readCall],
    ['anthropic-messages', request, '/v1/messages', protocols['anthropic-messages'].readCall],
    ['openai-responses', { model: 'a/b', input: [message] }, '/v1/responses', protocols['openai-responses'].readCall],
    ['gemini', { contents }, '/v1beta/models/a/b:generateContent', protocols.gemini.readCall],
    [
      'a token count of Anthropic',
      request,
      '/v1/messages/count_tokens',
      tokenCountDialects['anthropic-messages'].readCall,
    ],
    ['a token count of Gemini', { contents }, count, tokenCountDialects.gemini.readCall],
    [
      'a token count of a whole request of Gemini',
      { generateContentRequest: { contents } },
      count,
      tokenCountDialects.gemini.readCall,
    ],
  ] as const

  test.each(rows)('%s', (_name, json, path, readCall) => {
    const body = Buffer.from(JSON.stringify(json))
    // The other thread sends a clone of the parsed body.
    cacheParsedBody(body, structuredClone(parseBody(body)))
    const call = readCall(body, headFor(path))
    const found = getCachedReferences(call.json)
    expect(found).toEqual(findReferences(call.json) as never)
    expect(found).toHaveLength(1)
  })
})

test('the same id counts once for each kind of path', () => {
  const pathsOf = (json: object) => findReferences(json as never).map(({ path }) => path.join('.'))
  const id = 'resp_1'
  expect(
    pathsOf({ previous_response_id: id, extra: { previous_response_id: id }, more: { previous_response_id: id } }),
  ).toEqual(['previous_response_id', 'extra.previous_response_id'])
  const draft = { draft_task: { id: 'cgt-1' } }
  expect(pathsOf({ content: [draft, draft], extra: draft })).toEqual(['content.0.draft_task', 'extra.draft_task'])
})

test('a URL has a host only if it is public', () => {
  const host = (fileUri: string) => findReferences({ fileData: { fileUri } } as never).map(found => found.host)
  expect(host('https://x.example/a.mp4')).toEqual(['x.example'])
  expect(host('https://storage.googleapis.com/b/files/a')).toEqual(['storage.googleapis.com'])
  const withoutHost = [
    'https://www.googleapis.com/a',
    'https://x.example/files/a',
    'https://u:p@x.example/a',
    'files/a',
  ]
  for (const url of withoutHost) expect(host(url)).toEqual([undefined])
  const paddings = ['./'.repeat(3_000), 'x/'.repeat(3_000), 'x/../'.repeat(3_000)]
  for (const padding of paddings) expect(host(`https://x.example/${padding}files/a`)).toEqual([undefined])
})

test('the same URL counts once for each host that it counts for', () => {
  const url = 'https://x.example/v1/files/a'
  const parts = [{ image_url: { url } }, { image_url: { url } }, { fileData: { fileUri: url } }]
  const found = [
    { kind: 'file', id: url, host: 'x.example' },
    { kind: 'file', id: url },
  ]
  expect(findReferences({ parts } as never)).toMatchObject(found)
  expect(findReferences({ parts: parts.toReversed() } as never)).toMatchObject(found.toReversed())
})

test('the dots at the end of a host do not count', () => {
  const hosts = ['x.example', 'X.example.', 'x.example...'].map(host => plainHost(new URL(`https://${host}/a`)))
  expect(hosts).toEqual(['x.example', 'x.example', 'x.example'])
})

describe('the work for a request grows with its size, and not with the square of it:', () => {
  const spy = () => ({ parse: spyOn(URL, 'parse'), normalize: spyOn(String.prototype, 'normalize') })
  let spies: ReturnType<typeof spy>
  beforeEach(() => {
    spies = spy()
  })
  afterEach(() => {
    spies.parse.mockRestore()
    spies.normalize.mockRestore()
  })

  /** In a field for media, and in Gemini's field for files. */
  const inBothFields = (url: string) => [{ image_url: { url } }, { fileData: { fileUri: url } }] as never[]
  const ideographs = (length: number): string => String.fromCodePoint(...Array.from({ length }, (_, at) => 0x4e00 + at))

  // Bun's parser takes time that grows with the square of the length of a name in other scripts.
  const longHosts: readonly (readonly [string, string])[] = [
    ['dots', `a${'.'.repeat(20_000)}x`],
    ['letters', 'a'.repeat(262)],
    ['labels', `${'a.'.repeat(30_000)}x`],
    ['a name in another script', `${ideographs(64)}.example`],
    ['names in another script', Array.from({ length: 20 }, () => ideographs(990)).join('.')],
    ['letters that become many', '\ufdfa'.repeat(64)],
    ['escaped letters', encodeURIComponent(ideographs(30))],
    ['invisible characters', `x${'\u00ad'.repeat(64)}.example`],
    ['line breaks', `x${'\n'.repeat(300)}.example`],
    ['a port', `x.example:${'0'.repeat(300)}80`],
  ]
  const spellings: readonly (readonly [string, (host: string) => string])[] = [
    ['in a plain URL', host => `https://${host}/files/abc`],
    ['without a path', host => `https://${host}`],
    ['before a query', host => `https://${host}?/x`],
    ['before a fragment', host => `https://${host}#@x`],
    ['before a backslash', host => `https://${host}\\@x.example/`],
    ['in capitals', host => `HTTP://${host}/files/abc`],
    ['after one slash', host => `http:/${host}/files/abc`],
    ['after no slash', host => `http:${host}/files/abc`],
    ['after many slashes', host => `http:${'/'.repeat(300)}${host}/files/abc`],
    ['after backslashes', host => `http:\\/\\${host}/files/abc`],
    ['after line breaks', host => `http:\r\n/\t/\n${host}/files/abc`],
    ['after a name', host => `http://someone:secret@x@${host}/files/abc`],
  ]
  test.each(longHosts)('a URL with a host that is too long is a reference, and is not parsed: %s', (_name, host) => {
    for (const [spelling, write] of spellings) {
      const url = write(host)
      const found = inBothFields(url).map(json => findReferences(json).map(one => [one.kind, one.id, one.host]))
      const reference = ['file', url.slice(0, 4_096), undefined]
      expect([spelling, found]).toEqual([spelling, [[reference], [reference]]])
      expect([spelling, isStoredAtGoogle(url)]).toEqual([spelling, true])
      expect([spelling, spies.parse.mock.calls.length]).toEqual([spelling, 0])
    }
  })

  const name = `${'a'.repeat(63)}.`.repeat(4).slice(0, 253)
  const possibleHosts: readonly (readonly [string, string, string])[] = [
    ['the longest name', name, name],
    ['the longest name with a dot and a port', `${name}.:65535`, name],
    ['a name after a long password', `someone:${'x'.repeat(10_000)}@x.example`, 'x.example'],
    ['a name after many slashes', `${'/'.repeat(10_000)}x.example`, 'x.example'],
    ['a name in another script', 'b\u00fccher.example', 'xn--bcher-kva.example'],
    ['escaped letters', 'b%C3%BCcher.example', 'xn--bcher-kva.example'],
    ['dots of another script', `${'\u4e2d'.repeat(40)}\u3002${'\u4e2d'.repeat(40)}\uff61example:8080`, 'example'],
  ]
  test.each(possibleHosts)('a URL with a possible host is parsed once: %s', (_name, host, end) => {
    const url = `https://${host}/v1/files/file-1`
    expect(findReferences({ image_url: { url } } as never)[0]!.host).toEndWith(end)
    expect(spies.parse).toHaveBeenCalledTimes(1)
  })

  test('a URL whose host parsers do not agree on is a reference at every host', () => {
    for (const authority of [
      'someone:p@ss@x.example',
      'x.example\\@y.example',
      'x.example\t',
      'x\u00ad.example',
      '[x',
    ]) {
      const url = `https://${authority}/v1/files/file-1`
      expect(findReferences({ image_url: { url } } as never)).toEqual([
        { kind: 'file', id: url, path: ['image_url', 'url'] },
      ])
    }
  })

  test('a URL whose host is too long as it is asked for is a reference', () => {
    const url = `https://${Array.from({ length: 4 }, () => ideographs(60)).join('.')}/a`
    for (const json of inBothFields(url)) expect(findReferences(json)).toMatchObject([{ kind: 'file', id: url }])
    expect(isStoredAtGoogle(url)).toBe(true)
  })

  test('a URL that parsers read differently is normalized in short pieces', () => {
    // Many accents in a row must be sorted, which takes time that grows with the square of their number.
    const accents = '\u0315'.repeat(5_000) + '\u0300'.repeat(5_000)
    const names = ['generativelanguage', '\u{1d420}enerative\u{1d425}anguage', 'ge\u00adnerative\nlanguage']
    for (const google of [...names, 'storage\uff61cloud\u3002google', 'Ａｉplatform']) {
      for (const before of ['', accents, `${accents}x`, ...Array.from({ length: 33 }, (_, at) => '中'.repeat(at))]) {
        const url = `https://x.example\\@${before}${google}.googleapis.com/v1beta/files/yours`
        expect(isStoredAtGoogle(url)).toBe(true)
      }
    }
    expect(isStoredAtGoogle(`https://someone@x.example/${accents}`)).toBe(false)
    const pieces = spies.normalize.mock.contexts as unknown as readonly string[]
    expect(Math.max(...pieces.map(piece => [...String(piece)].length))).toBe(32)
  })

  /** How often a search reads the names and fields of an object. */
  function readsOf(fields: object, put: (holder: object) => object): number {
    let reads = 0
    const holder = new Proxy(fields, {
      get(target, field) {
        reads++
        return Reflect.get(target, field) as unknown
      },
      getOwnPropertyDescriptor(target, field) {
        reads++
        return Reflect.getOwnPropertyDescriptor(target, field)
      },
    })
    findReferences(put(holder) as never)
    return reads
  }
  const spelled = (field: string, count: number, value: string): object =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`${'_'.repeat(at % 32)}${field}${'_'.repeat(at / 32)}`, value]),
    )
  const objects: readonly (readonly [string, (count: number) => number])[] = [
    ['the id of a part', count => readsOf(spelled('id', count, 'x'), part => ({ messages: [{ content: [part] }] }))],
    [
      'the id of a part with parts',
      count => {
        const inner = Object.fromEntries(Array.from({ length: count }, (_, at) => [`part${at}`, { id: 'x' }]))
        return readsOf({ ...spelled('id', count, 'x'), ...inner }, part => ({ messages: [part] }))
      },
    ],
    [
      'the type of an item',
      count => readsOf({ id: 'x', content: 'x', ...spelled('type', count, 'message') }, item => ({ input: [item] })),
    ],
    [
      'the type of an item with all its thoughts',
      count =>
        readsOf({ id: 'x', encrypted_content: 'x', ...spelled('type', count, 'reasoning') }, item => ({
          input: [item],
        })),
    ],
  ]
  test.each(objects)('an object with many spellings of %s', (_name, readsFor) => {
    expect(readsFor(800)).toBeLessThan(10 * readsFor(100))
  })
})
