// Media from URLs of callers: what is refused before anything is sent, what is cancelled while it arrives, and
// what is returned. A fake resolver resolves the names; the loopback is allowed where a test says so.

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
/** By path. */
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

/** The loopback is allowed, as a name and as an address. */
const open: MediaFetchOptions = {
  privateHosts: loopback,
  async resolve(name) {
    resolved.push(name)
    const addresses = names[name]
    if (addresses === undefined) throw new Error('ENOTFOUND')
    return addresses
  },
}

const at = (path: string, host = 'media.test'): string => `http://${host}:${peer.port}${path}`

function fetchMedia(url: string, options: MediaFetchOptions = open, stop = new Stop<Error>()) {
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
  const { mime, bytes } = await fetchMedia(`${at('/a.png')}#part`)
  expect([mime, bytes.toString(), resolved]).toEqual(['image/png', 'PNG', ['media.test']])
  expect(peer.received).toEqual([
    [
      ...['GET /a.png HTTP/1.1', `Host: media.test:${peer.port}`, 'User-Agent: weir'],
      ...['Accept: image/*, audio/*, video/*, application/pdf, text/*', 'Accept-Encoding: identity'],
      ...['Connection: close', '', ''],
    ].join('\r\n'),
  ])
  await until(() => peer.openCount === 0, 'a connection serves once, also where its server would go on')
})

describe('refused before anything is sent:', () => {
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
    // At the port of the peer, so that a hole would be seen.
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
    ['a name of the loopback', [LOOPBACK]],
    ['one public address and one private', [PUBLIC, '10.0.0.1']],
    ['a mapped address', ['::ffff:127.0.0.1']],
    ['the address of a link', ['fe80::1%eth0']],
    ['no address at all, but text', ['localhost']],
  ])('%s', async (_what, addresses) => {
    const code = await codeOf(fetchMedia(at('/a.png'), { resolve: async () => addresses }))
    expect([code, peer.sockets.length]).toEqual(['media_refused', 0])
  })

  test("the system's own name for the loopback", async () => {
    for (const name of ['localhost', 'LOCALHOST']) {
      expect(await codeOf(fetchMedia(at('/a.png', name), {}))).toBe('media_refused')
    }
    // Not every system knows this one.
    expect(await codeOf(fetchMedia(at('/a.png', 'localhost.'), {}))).toMatch(/^media_(refused|unreachable)$/)
    expect(peer.sockets).toHaveLength(0)
  })
})

test('a name is not resolved a second time (DNS rebinding)', async () => {
  let asked = 0
  // The first answer is allowed, and is where the connection goes; the second would be a private one.
  const resolve = async (): Promise<readonly string[]> => (asked++ === 0 ? [LOOPBACK] : ['10.0.0.1'])
  expect((await fetchMedia(at('/a.png'), { ...open, resolve })).mime).toBe('image/png')
  expect([asked, peer.sockets.length]).toEqual([1, 1])
})

test('the next address is tried only if one does not answer', async () => {
  const resolve = async (): Promise<readonly string[]> => ['::1', '127.0.0.9', LOOPBACK]
  const privateHosts = loopback
  expect((await fetchMedia(at('/a.png'), { resolve, privateHosts })).mime).toBe('image/png')
  expect(peer.sockets).toHaveLength(1)
  expect(await codeOf(fetchMedia(at('/missing'), { resolve, privateHosts }))).toBe('media_unreachable')
  expect(peer.sockets).toHaveLength(2)
})

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])('by %d is not followed, and the caller gets an error', async status => {
    answers['/old'] = `HTTP/1.1 ${status} Go\r\nlocation: /a.png\r\ncontent-length: 0\r\n\r\n`
    await expect(fetchMedia(at('/old'))).rejects.toMatchObject({
      code: 'media_refused',
      extras: { hint: 'The reason: its server redirects; name the final URL instead.' },
    })
    expect([peer.sockets.length, resolved]).toEqual([1, ['media.test']])
  })
})

describe('what is there', () => {
  test.each([
    ['image/webp', 'image/webp'],
    ['IMAGE/SVG+XML; charset=utf-8', 'image/svg+xml'],
    ['audio/mpeg', 'audio/mpeg'],
    ['video/mp4 ; codecs="x"', 'video/mp4'],
    ['application/pdf', 'application/pdf'],
    ['text/plain;charset=utf-8', 'text/plain'],
  ])('as %s is %s', async (type, mime) => {
    answers['/x'] = answer(type)
    expect((await fetchMedia(at('/x'))).mime).toBe(mime)
  })

  test.each([
    ...['application/json', 'application/octet-stream', 'application/pdfx', 'imagex/png', 'x-image/png', '', 'image'],
    ...['image/', '/png', 'multipart/form-data', 'image/png, text/html'],
  ])('as %j is refused', async type => {
    answers['/x'] = answer(type)
    expect(await codeOf(fetchMedia(at('/x')))).toBe('media_refused')
  })

  test('without a type is refused, and the rest of it is not waited for', async () => {
    answers['/x'] = 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx'
    expect(await codeOf(fetchMedia(at('/x')))).toBe('media_refused')
    await until(() => peer.openCount === 0, 'the connection is let go of')
  })

  test('may have the largest size and not one byte more, with or without Content-Length', async () => {
    const body = Buffer.alloc(bounds.mediaBytesMax, 'x')
    answers['/fits'] = answer('image/png', body)
    expect((await fetchMedia(at('/fits'))).bytes.length).toBe(bounds.mediaBytesMax)
    answers['/announced'] = `HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${body.length + 1}\r\n\r\n`
    expect(await codeOf(fetchMedia(at('/announced')))).toBe('media_refused')
    const chunk = `${(body.length + 1).toString(16)}\r\n`
    const head = `HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`
    answers['/chunked'] = Buffer.concat([Buffer.from(head), body, Buffer.from('x\r\n0\r\n\r\n')])
    expect(await codeOf(fetchMedia(at('/chunked')))).toBe('media_refused')
    await until(() => peer.openCount === 0, 'and let go of')
  })

  test.each([
    ['is not there', 'HTTP/1.1 404 No\r\ncontent-type: image/png\r\ncontent-length: 0\r\n\r\n'],
    ['is a part', 'HTTP/1.1 206 Part\r\ncontent-type: image/png\r\ncontent-length: 1\r\n\r\nx'],
    ['is not HTTP', 'SSH-2.0-OpenSSH_9.7\r\n'],
    ['is encoded', answer('image/png', 'x', 'content-encoding: gzip\r\n')],
  ])('that %s is unreachable', async (_what, said) => {
    answers['/x'] = said
    expect(await codeOf(fetchMedia(at('/x')))).toBe('media_unreachable')
  })

  test('that breaks off is unreachable, as is a host that nobody knows or is not there', async () => {
    answers['/x'] = 'HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 9\r\n\r\nx'
    const broken = codeOf(fetchMedia(at('/x')))
    await until(() => peer.received.length === 1 && peer.received[0] !== '', 'it is asked for')
    peer.sockets[0]!.end()
    expect(await broken).toBe('media_unreachable')
    expect(await codeOf(fetchMedia(at('/a.png', 'unknown.test')))).toBe('media_unreachable')
    expect(await codeOf(fetchMedia(at('/a.png', 'none.test')))).toBe('media_unreachable')
    expect(await codeOf(fetchMedia('http://127.0.0.1:1024/', open))).toBe('media_unreachable')
  })
})

describe('it ends', () => {
  const slow = 'HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 9\r\n\r\nx'

  test.each([
    ['a body that does not come', { ...open, msMax: 60 }],
    ['a name that is not resolved', { ...open, msMax: 60, resolve: () => new Promise<never>(() => {}) }],
  ])('in time for %s', async (_what, options) => {
    answers['/slow'] = slow
    expect(await codeOf(fetchMedia(at('/slow'), options))).toBe('media_unreachable')
    await until(() => peer.openCount === 0, 'and lets go of the connection')
  })

  test("with its call, for the call's reason", async () => {
    answers['/slow'] = slow
    const stop = new Stop<Error>()
    const gone = new Error('gone')
    const fetching = fetchMedia(at('/slow'), open, stop)
    await until(() => peer.openCount === 1, 'it is asked for')
    stop.stop(gone)
    await expect(fetching).rejects.toBe(gone)
    await until(() => peer.openCount === 0, 'and lets go of the connection')
    await expect(fetchMedia(at('/a.png'), open, stop)).rejects.toBe(gone)
    expect(peer.sockets).toHaveLength(1)
  })

  test('immediately if there are too many', async () => {
    answers['/slow'] = slow
    const guarded = openMediaFetch({ ...open, msMax: 500 })
    const one = (): Promise<string> => codeOf(guarded.fetchMedia(at('/slow'), new Stop<Error>()))
    const many = Array.from({ length: bounds.mediaFetchesMax }, one)
    expect(await one()).toBe('overloaded')
    expect(new Set(await Promise.all(many))).toEqual(new Set(['media_unreachable']))
    expect((await guarded.fetchMedia(at('/a.png'), new Stop<Error>())).mime).toBe('image/png')
  })
})
