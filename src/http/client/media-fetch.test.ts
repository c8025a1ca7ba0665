// Tests media from URLs of callers: which URLs are refused before anything is sent, which fetches are cancelled, and
// what is returned. A fake resolver resolves the names; the loopback is allowed only in some tests.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { until } from '../../../test/support/gateway.ts'
import { loopback } from '../../../test/support/network-paths.ts'
import type { Peer } from '../../../test/support/peer.ts'
import { startPeer } from '../../../test/support/peer.ts'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { Stop } from '../../base/stop.ts'
import type { MediaFetchOptions } from './media-fetch.ts'
import { openMediaFetch } from './media-fetch.ts'

const LOOPBACK = '127.0.0.1'
const PNG = 'HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 3\r\n\r\nPNG'
const PUBLIC = '93.184.216.34'

let peer: Peer
/** The responses of the peer by path. */
let answers: Record<string, string | Buffer>
let resolved: string[]

beforeEach(async () => {
  answers = { '/a.png': PNG }
  resolved = []
  peer = await startPeer((socket, all) => {
    if (all.endsWith('\r\n\r\n')) socket.write(answers[all.split(' ')[1]!] ?? 'HTTP/1.1 404 No\r\n\r\n')
  })
})
afterEach(() => peer.stop())

const names: Record<string, readonly string[]> = { 'media.test': [LOOPBACK], 'none.test': [] }

/** Options that allow the loopback, as a name and as an address. */
const allowLoopback: MediaFetchOptions = {
  privateHosts: loopback,
  async resolve(name) {
    resolved.push(name)
    const addresses = names[name]
    if (addresses === undefined) throw new Error('ENOTFOUND')
    return addresses
  },
}

const urlOf = (path: string, host = 'media.test'): string => `http://${host}:${peer.port}${path}`

function fetchMedia(url: string, options: MediaFetchOptions = allowLoopback, stop = new Stop<Error>()) {
  return openMediaFetch(options).fetchMedia(url, stop)
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  const fault = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return fault instanceof Refusal ? fault.code : String(fault)
}

function answer(type: string, body: string | Buffer = 'x', more = ''): Buffer {
  const head = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n${more}\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.from(body)])
}

test('media is fetched from the resolved address, and the request contains nothing of the gateway', async () => {
  const { mime, bytes } = await fetchMedia(`${urlOf('/a.png')}#part`)
  expect([mime, bytes.toString(), resolved]).toEqual(['image/png', 'PNG', ['media.test']])
  expect(peer.received).toEqual([
    [
      ...['GET /a.png HTTP/1.1', `Host: media.test:${peer.port}`, 'User-Agent: weir'],
      ...['Accept: image/*, audio/*, video/*, application/pdf, text/*', 'Accept-Encoding: identity'],
      ...['Connection: close', '', ''],
    ].join('\r\n'),
  ])
  await until(() => peer.openCount === 0, 'the connection is closed although its server would keep it open')
})

describe('a URL is refused before anything is sent:', () => {
  test.each([
    ...['http://127.0.0.1', 'http://127.1', 'http://2130706433', 'http://0x7f000001', 'http://0x7f.1'],
    ...['http://0177.0.0.1', 'http://017700000001', 'http://127.0.0.1.', 'http://0', 'http://0.0.0.0'],
    ...['http://１２７.0.0.1', 'http://①②⑦.0.0.1', 'http://127。0。0。1', 'http:\\\\127.0.0.1', 'http:127.0.0.1'],
    ...['http://[::1]', 'http://[::]', 'http://[::ffff:127.0.0.1]', 'http://[::ffff:7f00:1]', 'http://[::127.0.0.1]'],
    ...['http://[64:ff9b::7f00:1]', 'http://[2002:7f00:1::]', 'http://[fe80::1]', 'http://[fd00:ec2::254]'],
    ...['http://10.0.0.1', 'http://192.168.1.1', 'http://172.16.0.1', 'http://100.64.0.1', 'http://169.254.169.254'],
    ...['http://168.63.129.16', 'http://224.0.0.1', 'http://255.255.255.255'],
    ...['https://127.0.0.1', 'HTTP://127.0.0.1', ' http://127.0.0.1', 'http://example.com@127.0.0.1'],
  ])('%j', async start => {
    // The URL has the port of the peer, so that a request that is sent by mistake would arrive there.
    const url = `${start}:${peer.port}/a.png`
    expect(await codeOf(fetchMedia(url, {}))).toBe('media_refused')
    expect(peer.sockets).toHaveLength(0)
  })

  test.each([
    ...['file:///etc/passwd', 'ftp://1.1.1.1/a', 'gopher://1.1.1.1/', 'data:image/png;base64,AAAA', 'javascript:1'],
    ...['', 'a.png', '/a.png', '//1.1.1.1/a', 'http://', 'http:///', 'http://a b/', 'http://[::1'],
    'http://1.1.1.1:99999',
    ...['http://u@1.1.1.1/', 'http://u:p@1.1.1.1/', 'http://:p@1.1.1.1/', 'http://1.1.1.1:25/', 'https://1.1.1.1:22/'],
    ...['http://[fe80::1%25eth0]/', `http://1.1.1.1/${'a'.repeat(9_000)}`, `http://1.1.1.1/${'é'.repeat(4_000)}`],
  ])('%j', async url => {
    expect(await codeOf(fetchMedia(url))).toBe('media_refused')
    expect(resolved).toEqual([])
  })

  test.each([
    ['a name that resolves to the loopback', [LOOPBACK]],
    ['a name with a public and a private address', [PUBLIC, '10.0.0.1']],
    ['a name with a mapped address', ['::ffff:127.0.0.1']],
    ['a name with a link-local address', ['fe80::1%eth0']],
    ['a name that resolves to text', ['localhost']],
  ])('%s', async (_name, addresses) => {
    const code = await codeOf(fetchMedia(urlOf('/a.png'), { resolve: async () => addresses }))
    expect([code, peer.sockets.length]).toEqual(['media_refused', 0])
  })

  test("the system's own name for the loopback", async () => {
    for (const name of ['localhost', 'LOCALHOST']) {
      expect(await codeOf(fetchMedia(urlOf('/a.png', name), {}))).toBe('media_refused')
    }
    // Not every system resolves this name.
    expect(await codeOf(fetchMedia(urlOf('/a.png', 'localhost.'), {}))).toMatch(/^media_(refused|unreachable)$/)
    expect(peer.sockets).toHaveLength(0)
  })
})

test('a name is not resolved a second time (DNS rebinding)', async () => {
  let lookups = 0
  // The client connects to the first answer, which is allowed. A second answer would be a private address.
  const resolve = async (): Promise<readonly string[]> => (lookups++ === 0 ? [LOOPBACK] : ['10.0.0.1'])
  expect((await fetchMedia(urlOf('/a.png'), { ...allowLoopback, resolve })).mime).toBe('image/png')
  expect([lookups, peer.sockets.length]).toEqual([1, 1])
})

test('the next address is tried only if one does not answer', async () => {
  const resolve = async (): Promise<readonly string[]> => ['::1', '127.0.0.9', LOOPBACK]
  const privateHosts = loopback
  expect((await fetchMedia(urlOf('/a.png'), { resolve, privateHosts })).mime).toBe('image/png')
  expect(peer.sockets).toHaveLength(1)
  expect(await codeOf(fetchMedia(urlOf('/missing'), { resolve, privateHosts }))).toBe('media_unreachable')
  expect(peer.sockets).toHaveLength(2)
})

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])('by %d is not followed, and the caller gets an error', async status => {
    answers['/old'] = `HTTP/1.1 ${status} Go\r\nlocation: /a.png\r\ncontent-length: 0\r\n\r\n`
    const { code, extras } = await fetchMedia(urlOf('/old')).then(
      () => expect.unreachable(),
      (fault: unknown) => fault as Refusal,
    )
    expect([code, extras.hint?.text]).toEqual([
      'media_refused',
      'The reason: its server redirects; name the final URL instead.',
    ])
    expect([peer.sockets.length, resolved]).toEqual([1, ['media.test']])
  })
})

describe('a response', () => {
  test.each([
    ['image/webp', 'image/webp'],
    ['IMAGE/SVG+XML; charset=utf-8', 'image/svg+xml'],
    ['audio/mpeg', 'audio/mpeg'],
    ['video/mp4 ; codecs="x"', 'video/mp4'],
    ['application/pdf', 'application/pdf'],
    ['text/plain;charset=utf-8', 'text/plain'],
  ])('with the type %s is media of the type %s', async (type, mime) => {
    answers['/x'] = answer(type)
    expect((await fetchMedia(urlOf('/x'))).mime).toBe(mime)
  })

  test.each([
    ...['application/json', 'application/octet-stream', 'application/pdfx', 'imagex/png', 'x-image/png', '', 'image'],
    ...['image/', '/png', 'multipart/form-data', 'image/png, text/html'],
  ])('with the type %j is refused', async type => {
    answers['/x'] = answer(type)
    expect(await codeOf(fetchMedia(urlOf('/x')))).toBe('media_refused')
  })

  test('without a type is refused, and the rest of it is not awaited', async () => {
    answers['/x'] = 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx'
    expect(await codeOf(fetchMedia(urlOf('/x')))).toBe('media_refused')
    await until(() => peer.openCount === 0, 'the connection is closed')
  })

  test('may have the largest size and not one byte more, with or without Content-Length', async () => {
    const body = Buffer.alloc(bounds.mediaBytesMax, 'x')
    answers['/fits'] = answer('image/png', body)
    expect((await fetchMedia(urlOf('/fits'))).bytes.length).toBe(bounds.mediaBytesMax)
    answers['/announced'] = `HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${body.length + 1}\r\n\r\n`
    expect(await codeOf(fetchMedia(urlOf('/announced')))).toBe('media_refused')
    const chunk = `${(body.length + 1).toString(16)}\r\n`
    const head = `HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`
    answers['/chunked'] = Buffer.concat([Buffer.from(head), body, Buffer.from('x\r\n0\r\n\r\n')])
    expect(await codeOf(fetchMedia(urlOf('/chunked')))).toBe('media_refused')
    await until(() => peer.openCount === 0, 'the connections are closed')
  })

  test.each([
    ['has the status 404', 'HTTP/1.1 404 No\r\ncontent-type: image/png\r\ncontent-length: 0\r\n\r\n'],
    ['has the status 206', 'HTTP/1.1 206 Part\r\ncontent-type: image/png\r\ncontent-length: 1\r\n\r\nx'],
    ['is not HTTP', 'SSH-2.0-OpenSSH_9.7\r\n'],
    ['is encoded', answer('image/png', 'x', 'content-encoding: gzip\r\n')],
  ])('that %s is unreachable', async (_name, text) => {
    answers['/x'] = text
    expect(await codeOf(fetchMedia(urlOf('/x')))).toBe('media_unreachable')
  })

  test('that breaks off is unreachable, and so is a host that does not resolve or does not answer', async () => {
    answers['/x'] = 'HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 9\r\n\r\nx'
    const fetching = codeOf(fetchMedia(urlOf('/x')))
    await until(() => peer.received.length === 1 && peer.received[0] !== '', 'the request has arrived')
    peer.sockets[0]!.end()
    expect(await fetching).toBe('media_unreachable')
    expect(await codeOf(fetchMedia(urlOf('/a.png', 'unknown.test')))).toBe('media_unreachable')
    expect(await codeOf(fetchMedia(urlOf('/a.png', 'none.test')))).toBe('media_unreachable')
    expect(await codeOf(fetchMedia('http://127.0.0.1:1024/', allowLoopback))).toBe('media_unreachable')
  })
})

describe('a fetch ends', () => {
  const slow = 'HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 9\r\n\r\nx'

  test.each([
    ['a body that does not arrive', { ...allowLoopback, msMax: 60 }],
    ['a name that is not resolved', { ...allowLoopback, msMax: 60, resolve: () => new Promise<never>(() => {}) }],
  ])('after its timeout with %s', async (_name, options) => {
    answers['/slow'] = slow
    expect(await codeOf(fetchMedia(urlOf('/slow'), options))).toBe('media_unreachable')
    await until(() => peer.openCount === 0, 'the connection is closed')
  })

  test('with its call, for the reason of the call', async () => {
    answers['/slow'] = slow
    const stop = new Stop<Error>()
    const reason = new Error('gone')
    const fetching = fetchMedia(urlOf('/slow'), allowLoopback, stop)
    await until(() => peer.openCount === 1, 'the request has arrived')
    stop.stop(reason)
    expect(await fetching.catch((fault: unknown) => fault)).toBe(reason)
    await until(() => peer.openCount === 0, 'the connection is closed')
    expect(await fetchMedia(urlOf('/a.png'), allowLoopback, stop).catch((fault: unknown) => fault)).toBe(reason)
    expect(peer.sockets).toHaveLength(1)
  })

  test('immediately if there are too many fetches', async () => {
    answers['/slow'] = slow
    const media = openMediaFetch(allowLoopback)
    const fetchSlow = (): Promise<string> => codeOf(media.fetchMedia(urlOf('/slow'), new Stop<Error>()))
    const many = Array.from({ length: bounds.mediaFetchesMax }, fetchSlow)
    expect(await fetchSlow()).toBe('overloaded')
    await until(() => peer.received.filter(text => text !== '').length === many.length, 'all requests have arrived')
    for (const socket of peer.sockets) socket.end()
    expect(new Set(await Promise.all(many))).toEqual(new Set(['media_unreachable']))
    expect((await media.fetchMedia(urlOf('/a.png'), new Stop<Error>())).mime).toBe('image/png')
  })
})
