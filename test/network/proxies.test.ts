// Upstreams behind a proxy: what the proxy receives, what it can read, and what happens if it fails.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Secret } from '../../src/base/secrets/secret.ts'
import { Stop } from '../../src/base/stop.ts'
import type { HttpClient } from '../../src/http/client/http-client.ts'
import { openHttpClient } from '../../src/http/client/http-client.ts'
import type { ClientOptions } from '../../src/http/client/request.ts'
import { cert, key } from '../support/certificate.ts'
import { until } from '../support/gateway.ts'
import { pathTo } from '../support/network-paths.ts'
import { outcomeOf } from '../support/outcome.ts'
import type { Peer } from '../support/peer.ts'
import { startPeer } from '../support/peer.ts'
import type { ProxyOptions, ProxyServer } from './proxy-server.ts'
import { startProxy } from './proxy-server.ts'

const PASSWORD = 'canary-proxy-password'
const CREDENTIALS = `gate:${PASSWORD}`
const BASIC = Buffer.from(CREDENTIALS).toString('base64')
const hello = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'

let proxy: ProxyServer
let client: HttpClient
/** An upstream with plain HTTP. */
let plain: Peer
/** An upstream with TLS. */
let secure: Bun.TCPSocketListener<{ said: string }>
let secureSaid: string[]
let resolved: string[]

/** Only the proxy's own name is resolved by the gateway. */
const options: ClientOptions = {
  ca: cert,
  async resolve(name) {
    resolved.push(name)
    if (name !== 'gate.test') throw new Error('nobody but the proxy knows this name')
    return ['127.0.0.1']
  },
}

beforeEach(async () => {
  secureSaid = []
  resolved = []
  client = openHttpClient(options)
  plain = await startPeer((socket, all) => void (all.endsWith('x') && socket.write(hello)))
  secure = Bun.listen<{ said: string }>({
    hostname: '127.0.0.1',
    port: 0,
    tls: { key, cert },
    socket: {
      open: socket => void (socket.data = { said: '' }),
      data(socket, bytes) {
        socket.data.said += bytes.toString('latin1')
        if (bytes.at(-1) !== 0x78) return
        secureSaid.push(socket.data.said)
        socket.data.said = ''
        socket.write(hello)
      },
      error() {},
    },
  })
})
afterEach(async () => {
  client.close()
  await proxy.stop()
  await plain.stop()
  secure.stop(true)
})

async function open(proxyOptions: ProxyOptions = {}): Promise<void> {
  proxy = await startProxy(proxyOptions)
}

interface RequestOptions {
  readonly url: string
  readonly by?: string
  readonly body?: Uint8Array
  readonly connectMs?: number
  readonly tlsMs?: number
  readonly stop?: Stop<Error>
}

async function sendThrough({
  url,
  by = proxy.url(),
  body = Buffer.from('x'),
  stop = new Stop<Error>(),
  ...times
}: RequestOptions) {
  const networkPath = pathTo(url, { permitted: false, proxy: new Secret(by), ...times })
  return await client.send({ url, networkPath: networkPath, headers: { authorization: 'Bearer k' }, body }, stop)
}

const answered = async (asked: RequestOptions): Promise<string> =>
  String(await (await sendThrough(asked)).readWhole(1_000))
const https = (host = 'weir.test'): string => `https://${host}:${secure.port}/v1/chat`

describe('through a tunnel', () => {
  test('calls reach the upstream as without a proxy, one after the other', async () => {
    await open({ credentials: CREDENTIALS })
    for (const _time of [1, 2, 3]) expect(await answered({ url: https() })).toBe('hello')
    const at = `weir.test:${secure.port}`
    const words = [`CONNECT ${at} HTTP/1.1`, `Host: ${at}`, `Proxy-Authorization: Basic ${BASIC}`, '', '']
    expect(proxy.heads).toEqual([words.join('\r\n')])
    expect(secureSaid).toHaveLength(3)
    expect(secureSaid[0]).toStartWith('POST /v1/chat HTTP/1.1\r\nHost: weir.test')
    expect(secureSaid.join()).not.toContain(BASIC)
    // The proxy cannot read anything of the call.
    expect(proxy.received).not.toMatch(/Bearer|chat/)
    expect(resolved).toEqual([])
  })

  test('a long body arrives, and a tunnel that is idle for too long is closed', async () => {
    await open()
    client = openHttpClient({ ...options, idleSeconds: 1 })
    const body = Buffer.alloc(3_000_000, 'y')
    body[body.length - 1] = 0x78
    expect(await answered({ url: https(), body })).toBe('hello')
    expect(secureSaid[0]!.length).toBeGreaterThan(body.length)
    expect(proxy.openCount).toBe(1)
    Bun.gc(true)
    expect(await answered({ url: https() })).toBe('hello')
    await until(() => proxy.openCount === 0, 'the connection is closed')
    expect(await answered({ url: https() })).toBe('hello')
    expect(proxy.heads).toHaveLength(2)
  })

  test('the upstream must present its own certificate', async () => {
    await open()
    expect(await outcomeOf(answered({ url: https('other.test') }))).toThrow('the certificate was refused')
    expect(secureSaid).toEqual([])
  })

  test('a stop closes the tunnel, while it is opened and while it is used', async () => {
    await open({ misbehave() {} })
    const stop = new Stop<Error>()
    const sending = sendThrough({ url: https(), stop })
    await until(() => proxy.heads.length === 1, 'a tunnel is asked for')
    stop.stop(new Error('enough'))
    expect(await outcomeOf(sending)).toThrow()
    await until(() => proxy.openCount === 0, 'the connection is closed')
  })

  test('to an upstream that is silent, the call ends in time', async () => {
    const isFirst = (): boolean => proxy.heads.length === 1
    await open({ misbehave: socket => void (isFirst() && socket.write('HTTP/1.1 200 OK\r\n\r\n')) })
    expect(await outcomeOf(answered({ url: https(), tlsMs: 60 }))).toThrow(
      'cannot connect: no TLS handshake within 60 ms',
    )
    await until(() => proxy.openCount === 0, 'the connection is closed')
  })
})

describe('without TLS', () => {
  test('the proxy reads the request and forwards it, and its credentials stay there', async () => {
    await open({ credentials: CREDENTIALS })
    const url = `http://api.test:${plain.port}/v1/chat?a=b`
    const networkPath = pathTo(url, { proxy: new Secret(proxy.url()) })
    const send = async (): Promise<string> => {
      const incoming = await client.send(
        { url, networkPath: networkPath, headers: {}, body: Buffer.from('x') },
        new Stop<Error>(),
      )
      return String(await incoming.readWhole(100))
    }
    expect([await send(), await send()]).toEqual(['hello', 'hello'])
    const words = [`POST ${url} HTTP/1.1`, `Host: api.test:${plain.port}`, `Proxy-Authorization: Basic ${BASIC}`]
    expect(proxy.heads[0]).toStartWith(`${words.join('\r\n')}\r\n`)
    expect(plain.received[0]).toStartWith(`POST /v1/chat?a=b HTTP/1.1\r\nHost: api.test:${plain.port}\r\n`)
    expect(plain.received.join()).not.toContain(BASIC)
    expect([plain.sockets.length, resolved]).toEqual([1, []])
  })

  test('a proxy that refuses the credentials is distinguished from an upstream that does', async () => {
    await open({ credentials: CREDENTIALS })
    const url = `http://api.test:${plain.port}/`
    const networkPath = pathTo(url, { proxy: new Secret(proxy.url('gate:wrong')) })
    const sent = client.send({ url, networkPath: networkPath, headers: {}, body: Buffer.from('x') }, new Stop<Error>())
    expect(await outcomeOf(sent)).toThrow(/^the proxy refuses the user name and password \(407\)$/)
    expect(plain.sockets).toHaveLength(0)
  })
})

test('connections through one proxy serve no call that goes through another, or through none', async () => {
  await open()
  const otherProxy = await startProxy({ credentials: CREDENTIALS })
  const direct = openHttpClient({ ...options, resolve: async () => ['127.0.0.1'] })
  try {
    for (const by of [proxy.url(), otherProxy.url(), proxy.url(), otherProxy.url()])
      await answered({ url: https(), by })
    expect([proxy.heads.length, otherProxy.heads.length]).toEqual([1, 1])
    const request = { url: https(), networkPath: pathTo(https()), headers: {}, body: Buffer.from('x') }
    await (await direct.send(request, new Stop<Error>())).readWhole(100)
    expect([proxy.heads.length, otherProxy.heads.length]).toEqual([1, 1])
  } finally {
    direct.close()
    await otherProxy.stop()
  }
})

test('the name of a proxy is resolved, and may be a private host', async () => {
  await open()
  expect(await answered({ url: https(), by: `http://gate.test:${proxy.port}` })).toBe('hello')
  expect(resolved).toEqual(['gate.test'])
  const sent = answered({ url: https('elsewhere.test'), by: 'http://169.254.169.254:3128' })
  expect(await outcomeOf(sent)).toThrow('must not be a cloud metadata, link-local or multicast address')
})

const sendsText = (text: string): ProxyOptions => ({ misbehave: socket => void socket.write(text) })

describe('a proxy that', () => {
  test.each<readonly [string, ProxyOptions, string]>([
    ['refuses the credentials', { credentials: 'somebody:else' }, 'the proxy refuses the user name and password (407)'],
    ['forbids it', sendsText('HTTP/1.1 403 No\r\ncontent-length: 2\r\n\r\nno'), 'the proxy refuses the tunnel (403)'],
    ['cannot reach it', sendsText('HTTP/1.0 502 Bad Gateway\r\n\r\n'), 'the proxy refuses the tunnel (502)'],
    [
      'sends us elsewhere',
      sendsText('HTTP/1.1 302 Go\r\nlocation: http://x/\r\n\r\n'),
      'the proxy refuses the tunnel (302)',
    ],
    ['says something in between', sendsText('HTTP/1.1 100 Continue\r\n\r\n'), 'the proxy refuses the tunnel (100)'],
    ['speaks another language', sendsText('SSH-2.0-OpenSSH_9.7\r\n'), 'the proxy does not speak HTTP'],
    ['speaks HTTP badly', sendsText('HTTP/1.1 200 OK\nfoo\r\n\r\n'), 'the proxy does not speak HTTP'],
    [
      'sends too much',
      sendsText(`HTTP/1.1 200 OK\r\na: ${'b'.repeat(20_000)}\r\n\r\n`),
      'the reply of the proxy is too long',
    ],
    [
      'never comes to an end',
      sendsText(`HTTP/1.1 200 OK\r\na: ${'b'.repeat(20_000)}`),
      'the reply of the proxy is too long',
    ],
    [
      'speaks for the upstream',
      sendsText('HTTP/1.1 200 OK\r\n\r\nx'),
      'the proxy sent data before the tunnel was used',
    ],
    ['hangs up', { misbehave: socket => void socket.destroy() }, 'the proxy closed the connection'],
    [
      'hangs up in the middle',
      { misbehave: socket => void socket.end('HTTP/1.1 2') },
      'the proxy closed the connection',
    ],
    ['says nothing', { misbehave() {} }, 'no reply of the proxy to CONNECT within 150 ms'],
    ['drips', sendsText('HTTP/1.1 200'), 'no reply of the proxy to CONNECT within 150 ms'],
  ])('%s fails the attempt with a message', async (_what, proxyOptions, words) => {
    await open(proxyOptions)
    const credentials = 'gate:canary-proxy-password'
    const connectMs = words.endsWith('within 150 ms') ? 150 : 60_000 // all others answer, however slow the machine is
    const fault: unknown = await answered({ url: https(), by: proxy.url(credentials), connectMs }).catch(
      (reason: unknown) => reason,
    )
    expect((fault as Error).message).toBe(`weir.test:${secure.port}: cannot connect: ${words}`)
    await until(() => proxy.openCount === 0, 'the connection is closed')
    expect(secureSaid).toEqual([])
  })

  test('does not exist fails the attempt', async () => {
    await open()
    await proxy.stop()
    expect(await outcomeOf(answered({ url: https() }))).toThrow('cannot connect: ECONNREFUSED')
  })
})
