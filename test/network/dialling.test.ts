// How a connection is made, and each way in which it fails: in time, with its own message, and without sending anything
// of the request.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { bounds } from '../../src/base/bounds.ts'
import { Stop } from '../../src/base/stop.ts'
import type { HttpClient } from '../../src/http/client/http-client.ts'
import { openHttpClient } from '../../src/http/client/http-client.ts'
import type { ClientOptions } from '../../src/http/client/request.ts'
import { openFullQueue } from '../../tools/fake-upstream/places/unreachable.ts'
import { cert, key } from '../support/certificate.ts'
import { until } from '../support/gateway.ts'
import { pathTo } from '../support/network-paths.ts'
import type { Peer } from '../support/peer.ts'
import { startPeer } from '../support/peer.ts'

const hello = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'

let peer: Peer
let client: HttpClient
let sent: number
const closing: (() => unknown)[] = []

beforeEach(async () => {
  sent = 0
  peer = await startPeer((socket, all) => void (all.endsWith('\r\n\r\nx') && socket.write(hello)))
  closing.push(() => peer.stop())
})
afterEach(async () => {
  client.close()
  for (const close of closing.splice(0)) await close()
})

const leadingTo = (...addresses: readonly string[]): ClientOptions => ({ resolve: async () => addresses })

function open(options: ClientOptions = {}): void {
  client = openHttpClient(options)
}

interface ConnectOptions {
  readonly url: string
  readonly connectMs?: number
  readonly tlsMs?: number
  readonly stop?: Stop<Error>
}

async function send({ url, stop = new Stop<Error>(), ...times }: ConnectOptions): Promise<string> {
  const onSend = (): void => void sent++
  const request = { url, networkPath: pathTo(url, times), headers: {}, body: Buffer.from('x'), onSend }
  const incoming = await client.send(request, stop)
  return String(await incoming.readWhole(100))
}

/** The message without the host, and how often a request was sent. */
async function failure(options: ConnectOptions): Promise<readonly [string, number]> {
  const fault = await send(options).then(
    () => undefined,
    (reason: unknown) => reason as Error,
  )
  return [fault?.message.replace(/^[^ ]+: /, '') ?? 'answered', sent]
}

const at = (host: string, port = peer.port, scheme = 'http'): string => `${scheme}://${host}:${port}/`

describe('a connection fails in time', () => {
  test('if the port is closed', async () => {
    open()
    await peer.stop()
    expect(await failure({ url: peer.url })).toEqual(['cannot connect: ECONNREFUSED', 0])
  })

  test('if the host does not answer', async () => {
    open()
    const fullQueue = await openFullQueue()
    closing.push(() => fullQueue.stop())
    const words = 'cannot connect: no answer within 120 ms'
    expect(await failure({ url: fullQueue.origin, connectMs: 120 })).toEqual([words, 0])
  })

  test('if the name is not resolved', async () => {
    open({ resolve: () => new Promise<never>(() => {}) })
    const words = 'cannot connect: its host name was not resolved within 80 ms'
    expect(await failure({ url: at('slow.test'), connectMs: 80 })).toEqual([words, 0])
  })

  test('if the TLS handshake gets no answer, and the connection is closed', async () => {
    open(leadingTo('127.0.0.1'))
    const options = { url: at('mute.test', peer.port, 'https'), tlsMs: 90 }
    expect(await failure(options)).toEqual(['cannot connect: no TLS handshake within 90 ms', 0])
    await until(() => peer.sockets.length === 1 && peer.openCount === 0, 'the connection is closed')
  })

  test('if the server does not speak TLS', async () => {
    const plainServer = await startPeer(socket => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
    closing.push(() => plainServer.stop())
    open(leadingTo('127.0.0.1'))
    const [words, times] = await failure({ url: at('rude.test', plainServer.port, 'https') })
    expect([words.slice(0, 22), times]).toEqual(['cannot connect: no TLS', 0])
  })

  test('if it is closed before it is open', async () => {
    open(leadingTo('127.0.0.1'))
    for (const cut of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
      const cutting = await startPeer(socket => void cut(socket))
      closing.push(() => cutting.stop())
      const [words, times] = await failure({ url: at('cut.test', cutting.port, 'https') })
      expect([words.slice(0, 15), times]).toEqual(['cannot connect:', 0])
    }
  })

  test('by default after the time in the bounds', () => {
    expect([bounds.connectMsMax, bounds.tlsMsMax]).toEqual([5_000, 5_000])
  })
})

describe('of several addresses of a host', () => {
  test('the next is tried if one refuses', async () => {
    open(leadingTo('127.0.0.8', '127.0.0.9', '127.0.0.1'))
    expect(await send({ url: at('many.test') })).toBe('hello')
    expect([peer.sockets.length, sent]).toEqual([1, 1])
  })

  test('the next is tried if one does not answer, within the same time', async () => {
    const fullQueue = await openFullQueue({ host: '127.0.0.2', port: peer.port })
    closing.push(() => fullQueue.stop())
    // Each address has a fourth of the time, so that much is left for the second, also on a slow machine.
    open(leadingTo('127.0.0.2', '127.0.0.1', '127.0.0.1', '127.0.0.1'))
    expect(await send({ url: at('many.test'), connectMs: 12_000 })).toBe('hello')
    expect([peer.sockets.length, sent]).toEqual([1, 1])
    open(leadingTo('127.0.0.2', '127.0.0.2', '127.0.0.2'))
    const words = 'cannot connect: no answer within 200 ms'
    expect((await failure({ url: at('none.test'), connectMs: 200 }))[0]).toBe(words)
  })

  test('none is tried after one that answered, whatever the answer was', async () => {
    const wrongServer = Bun.listen({
      hostname: '127.0.0.3',
      port: peer.port,
      tls: { key, cert },
      socket: { data() {}, error() {} },
    })
    closing.push(() => wrongServer.stop(true))
    open({ ...leadingTo('127.0.0.3', '127.0.0.1'), ca: cert })
    const [words, times] = await failure({ url: at('other.test', peer.port, 'https') })
    expect([words.slice(0, 27), times, peer.sockets.length]).toEqual(['the certificate was refused', 0, 0])
  })

  test('only some of many are tried, with some of each family', async () => {
    const six = Bun.listen({
      hostname: '::1',
      port: 0,
      socket: { data: socket => void socket.write(hello), error() {} },
    })
    closing.push(() => six.stop(true))
    const four = Array.from({ length: 9 }, (_, index) => `127.0.1.${index + 1}`)
    open(leadingTo(...four, '::1'))
    expect(await send({ url: at('many.test', six.port) })).toBe('hello')
    open(leadingTo(...four, '127.0.0.1'))
    expect(await failure({ url: at('many.test') })).toEqual(['cannot connect: ECONNREFUSED', 1])
  })
})

describe('a stop', () => {
  test('while a name is resolved prevents the connection', async () => {
    const answer = Promise.withResolvers<readonly string[]>()
    open({ resolve: () => answer.promise })
    const stop = new Stop<Error>()
    const sending = failure({ url: at('slow.test'), stop })
    stop.stop(new Error('enough'))
    expect(await sending).toEqual(['the request was cancelled', 0])
    answer.resolve(['127.0.0.1'])
    // The next call uses the resolved name; if the first had gone on, there would be two connections.
    expect(await send({ url: at('slow.test') })).toBe('hello')
    expect(peer.sockets).toHaveLength(1)
  })
})

test('unanswered connection attempts are bounded in number, and do not block other hosts', async () => {
  const fullQueue = await openFullQueue()
  open(leadingTo('127.0.0.1'))
  const attempt = (): Promise<readonly [string, number]> => failure({ url: fullQueue.origin, connectMs: 60 })
  const failures = await Promise.all(Array.from({ length: bounds.abandonedConnectsMax }, attempt))
  expect(new Set(failures.map(([words]) => words))).toEqual(new Set(['cannot connect: no answer within 60 ms']))
  const refused = await failure({ url: fullQueue.origin, connectMs: 60_000 })
  expect(refused).toEqual(['cannot connect: too many connection attempts are pending', 0])
  expect(await send({ url: at('other.test') })).toBe('hello')
  await fullQueue.stop()
  let words = ''
  await until(() => {
    void failure({ url: fullQueue.origin, connectMs: 60 }).then(([message]) => (words = message))
    return words === 'cannot connect: ECONNREFUSED'
  }, 'they have come to an end, and it is tried again')
})
