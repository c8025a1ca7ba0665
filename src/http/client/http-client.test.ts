// Tests requests on real sockets: what is sent, and which connections are reused or closed.

import { afterEach, describe, expect, test } from 'bun:test'
import { until } from '../../../test/support/gateway.ts'
import { pathTo } from '../../../test/support/network-paths.ts'
import { outcomeOf } from '../../../test/support/outcome.ts'
import type { Peer } from '../../../test/support/peer.ts'
import { startPeer } from '../../../test/support/peer.ts'
import { bounds } from '../../base/bounds.ts'
import { Stop } from '../../base/stop.ts'
import type { HttpClient } from './http-client.ts'
import { openHttpClient } from './http-client.ts'
import type { IncomingResponse } from './request.ts'

const KIB = 1024
const MIB = KIB * KIB
const helloResponse = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'

let client: HttpClient
let peer: Peer
afterEach(async () => {
  client.close()
  await peer.stop()
})

async function start(...args: Parameters<typeof startPeer>): Promise<void> {
  client = openHttpClient()
  peer = await startPeer(...args)
}

interface RequestOptions {
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array
  readonly stop?: Stop<Error>
}

function sendRequest({ path = '/', headers = {}, body = 'x', stop = new Stop<Error>() }: RequestOptions = {}) {
  return client.send({ url: peer.url + path, networkPath: pathTo(peer.url), headers, body: Buffer.from(body) }, stop)
}

const bodyOf = async (incoming: IncomingResponse): Promise<string> => String(await incoming.readWhole(MIB))
const fetchBody = async (options?: RequestOptions): Promise<string> => bodyOf(await sendRequest(options))

/** Whether a request is complete: its one-byte body has arrived. */
const isComplete = (all: string): boolean => all.endsWith('\r\n\r\nx')

describe('a request', () => {
  test('has the given headers and those that HTTP needs, byte for byte', async () => {
    await start((socket, all) => void (all.endsWith('}') && socket.write(helloResponse)))
    const headers = { 'content-type': 'application/json', 'X-Key': 'Gr\xfc\xdfe' }
    expect(await fetchBody({ path: '/v1/a%20b?c=d&e#f', headers, body: '{"é":1}' })).toBe('hello')
    expect(peer.received).toEqual([
      [
        ...['POST /v1/a%20b?c=d&e HTTP/1.1', `Host: 127.0.0.1:${peer.port}`, 'content-type: application/json'],
        ...['X-Key: Gr\xfc\xdfe', 'Connection: keep-alive', 'Content-Length: 8', '', '{"\xc3\xa9":1}'],
      ].join('\r\n'),
    ])
  })

  test.each(['GET', 'DELETE', 'POST'] as const)('may be a %s without a body', async method => {
    await start((socket, all) => void (all.endsWith('\r\n\r\n') && socket.write(helloResponse)))
    const url = `${peer.url}/v1/responses/resp_1?a=b`
    const request = { method, url, networkPath: pathTo(url), headers: {}, body: Buffer.alloc(0) }
    expect(await bodyOf(await client.send(request, new Stop<Error>()))).toBe('hello')
    const startLines = [`${method} /v1/responses/resp_1?a=b HTTP/1.1`, `Host: 127.0.0.1:${peer.port}`]
    expect(peer.received).toEqual([[...startLines, 'Connection: keep-alive', 'Content-Length: 0', '', ''].join('\r\n')])
  })

  test.each([
    ['a value with a line end', { a: 'b\r\nc: d' }],
    ['a value with a bare LF', { a: 'b\nc: d' }],
    ['a value with a NUL', { a: 'b\0' }],
    ['a value with a character that latin1 would turn into a line end', { a: 'b\u010a' }],
    ['a name with a colon', { 'a:b': 'c' }],
    ['a name with a blank', { 'a ': 'c' }],
    ['an empty name', { '': 'c' }],
    ['a length of its own', { 'content-length': '3' }],
    ['an encoding of its own', { 'Transfer-Encoding': 'chunked' }],
    ['a host of its own', { HOST: 'example.com' }],
    ['headers that are too long', { a: 'b'.repeat(64 * KIB) }],
  ])('with %s is not sent', async (_name, headers) => {
    await start(() => {})
    // The message goes to the log, so it does not repeat the value, which may be a secret.
    const message = /^(?:a header that cannot|headers that are too long to) be sent$/
    expect(await outcomeOf(sendRequest({ headers: headers as Record<string, string> }))).toThrow(message)
    expect(peer.sockets).toHaveLength(0)
  })

  test('that is long is sent as fast as it is read, on new and reused connections, and arrives unchanged', async () => {
    const body = Buffer.alloc(20 * MIB, 'abcdefghijklmnopqrstuvwxyz\n')
    let expectedBytes = body.length
    await start(
      (socket, all) => {
        if (all.length - all.lastIndexOf('POST /') < expectedBytes) return
        socket.write(helloResponse)
      },
      socket => {
        socket.pause()
        setTimeout(() => socket.resume(), 50)
      },
    )
    for (const size of [body.length, 70 * KIB, body.length]) {
      const part = body.subarray(0, size)
      expectedBytes = size
      expect(await fetchBody({ body: part })).toBe('hello')
      const sent = peer.received[0]!
      expect(sent.slice(sent.lastIndexOf('\r\n\r\n') + 4) === part.toString('latin1')).toBe(true)
    }
    expect(peer.sockets).toHaveLength(1)
  })

  test.each(['http://u:p@127.0.0.1/', 'ftp://127.0.0.1/', 'nowhere'])('to the URL %s is refused', async url => {
    await start(() => {})
    const sent = client.send({ url, headers: {}, body: Buffer.from('x') }, new Stop<Error>())
    expect(await outcomeOf(sent)).toThrow()
  })
})

describe('a connection', () => {
  test('serves one call after another, and calls at the same time have their own connections', async () => {
    await start((socket, all) => void (isComplete(all) && socket.write(helloResponse)))
    for (let calls = 5; calls > 0; calls--) expect(await fetchBody()).toBe('hello')
    expect(peer.sockets).toHaveLength(1)
    await Promise.all([fetchBody(), fetchBody(), fetchBody()])
    expect(peer.sockets).toHaveLength(3)
    await Promise.all([fetchBody(), fetchBody(), fetchBody()])
    expect(peer.sockets).toHaveLength(3)
    client.close()
    await until(() => peer.openCount === 0, 'idle connections are closed')
  })

  const lastResponses: readonly (readonly [string, string])[] = [
    ['with Connection: close', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello'],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello'],
    ['with bytes after it', `${helloResponse}HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong`],
    [
      'with a length and chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n' + '5\r\nhello\r\n0\r\n\r\n',
    ],
  ]
  test.each(lastResponses)('is not reused after a response %s', async (_name, text) => {
    await start((socket, all) => void (isComplete(all) && socket.write(text)))
    expect([await fetchBody(), await fetchBody()]).toEqual(['hello', 'hello'])
    expect(peer.sockets).toHaveLength(2)
    await until(() => peer.openCount === 0, 'both connections are closed')
  })

  test('is not reused when unrequested bytes arrive', async () => {
    await start((socket, all) => void (isComplete(all) && socket.write(helloResponse)))
    await fetchBody()
    peer.sockets[0]!.write(helloResponse.replace('hello', 'wrong'))
    await until(() => peer.openCount === 0, 'the connection is closed')
    expect(await fetchBody()).toBe('hello')
  })

  test('is not reused when it is closed meanwhile', async () => {
    await start((socket, all) => void (isComplete(all) && socket.write(helloResponse)))
    await fetchBody()
    peer.sockets[0]!.end()
    await until(() => peer.openCount === 0, 'the connection is closed')
    expect(await fetchBody()).toBe('hello')
    expect(peer.sockets).toHaveLength(2)
  })

  test('is not reused when its response is complete before its request', async () => {
    await start(socket => {
      if (socket.bytesWritten > 0) return
      socket.pause()
      socket.write(helloResponse)
    })
    expect(await fetchBody({ body: Buffer.alloc(30 * MIB) })).toBe('hello')
    peer.sockets[0]!.resume()
    await until(() => peer.openCount === 0, 'the connection is closed')
  })

  test('that breaks during a request is not replaced: no request is sent twice', async () => {
    await start((socket, all) => {
      if (all.split('POST').length > 2) socket.resetAndDestroy()
      else if (isComplete(all)) socket.write(helloResponse)
    })
    await fetchBody()
    expect(await outcomeOf(fetchBody())).toThrow('127.0.0.1')
    expect(peer.received.join('').split('POST')).toHaveLength(3)
  })

  test('is reused after a response that was paused', async () => {
    // The last byte reaches the limit of unread bytes, so the response is complete at the moment in which it is paused.
    const length = bounds.unreadBytesMax
    await start((socket, all) => {
      if (isComplete(all)) socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${'x'.repeat(length)}`)
    })
    for (let calls = 3; calls > 0; calls--) {
      const incoming = await sendRequest()
      let polls = 0
      await until(() => peer.sockets[0]!.writableLength === 0 && ++polls > 10, 'the response has arrived')
      expect((await incoming.readWhole(MIB))!.length).toBe(length)
    }
    expect(peer.sockets).toHaveLength(1)
  })

  test('that is idle for too long is closed', async () => {
    await start((socket, all) => void (isComplete(all) && socket.write(helloResponse)))
    client = openHttpClient({ idleSeconds: 1 })
    await fetchBody()
    expect(peer.openCount).toBe(1)
    await until(() => peer.openCount === 0, 'the connection is closed')
    expect(await fetchBody()).toBe('hello')
  })

  test('that is in use is not closed, however long that takes', async () => {
    await start((socket, all) => {
      if (isComplete(all)) setTimeout(() => socket.write(helloResponse), all.split('POST').length > 2 ? 6_000 : 0)
    })
    client = openHttpClient({ idleSeconds: 1 })
    expect([await fetchBody(), await fetchBody()]).toEqual(['hello', 'hello'])
    expect(peer.sockets).toHaveLength(1)
  })

  test('stays open only up to the bound of idle connections', async () => {
    await start((socket, all) => void (isComplete(all) && setTimeout(() => socket.write(helloResponse), 300)))
    const calls = bounds.idleConnectionsMax + 20
    await Promise.all(Array.from({ length: calls }, () => fetchBody()))
    expect(peer.sockets).toHaveLength(calls)
    await until(() => peer.openCount === bounds.idleConnectionsMax, 'those beyond the bound are closed')
  })
})

describe('a response', () => {
  test('is returned piece by piece, and its end as an empty piece', async () => {
    await start((socket, all) => void (isComplete(all) && socket.write('HTTP/1.1 200 OK\r\nA: b\r\na: c\r\n\r\none')))
    const incoming = await sendRequest()
    expect([incoming.status, incoming.header('A'), incoming.header('b')]).toEqual([200, 'b, c', null])
    expect(String((await incoming.read()).value)).toBe('one')
    const second = incoming.read()
    peer.sockets[0]!.end('two')
    expect(String((await second).value)).toBe('two')
    expect([await incoming.read(), await incoming.read()]).toEqual([{}, {}])
  })

  test('is handed over as it arrives, until the reader takes no more, and from there on again', async () => {
    await start((socket, all) => void (isComplete(all) && socket.write('HTTP/1.1 200 OK\r\n\r\none')))
    const incoming = await sendRequest()
    const taken: string[] = []
    const take = (piece: Buffer): boolean => {
      taken.push(String(piece))
      if (taken.length === 1) peer.sockets[0]!.write('two')
      return taken.length !== 2
    }
    expect(await incoming.readEach(take)).toBe(true)
    expect(taken).toEqual(['one', 'two'])
    const rest = incoming.readEach(take)
    peer.sockets[0]!.end('three')
    expect(await rest).toBe(false)
    expect(taken).toEqual(['one', 'two', 'three'])
    expect(await incoming.readEach(take)).toBe(false)
  })

  test('that is handed over ends with the error of its connection, or of its reader', async () => {
    await start((socket, all) => void (isComplete(all) && socket.write('HTTP/1.1 200 OK\r\n\r\n')))
    const [broken, refused] = [await sendRequest(), await sendRequest()]
    const reading = broken.readEach(() => true)
    peer.sockets[0]!.resetAndDestroy()
    expect(await outcomeOf(reading)).toThrow()
    const refusing = refused.readEach(() => {
      throw new Error('a mistake of the reader')
    })
    peer.sockets[1]!.write('one')
    expect(await outcomeOf(refusing)).toThrow('a mistake of the reader')
    expect(await Promise.race([refused.read(), Promise.resolve('nothing is lost or read twice')])).toBeString()
  })

  test('that its reader discards with the last piece leaves no connection to be used again', async () => {
    const [head, body] = [helloResponse.slice(0, -5), helloResponse.slice(-5)]
    await start((socket, all) => void (isComplete(all) && socket.write(head)))
    const incoming = await sendRequest()
    const reading = incoming.readEach(() => {
      incoming.discard()
      return false
    })
    peer.sockets[0]!.write(body)
    expect(await outcomeOf(reading)).toThrow('cancelled')
    const next = await sendRequest()
    expect(peer.sockets).toHaveLength(2)
    next.discard()
  })

  test.each([
    ['its head', 'HTTP/1.1 200 O'],
    ['its body', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel'],
    ['its chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel'],
  ])('that ends within %s is an error', async (_name, text) => {
    await start((socket, all) => void (isComplete(all) && socket.end(text)))
    expect(await outcomeOf(fetchBody())).toThrow('closed before the end')
  })

  test('that ends with the connection is an error when the connection breaks', async () => {
    await start((socket, all) => void (isComplete(all) && socket.write('HTTP/1.1 200 OK\r\n\r\nhello')))
    const incoming = await sendRequest()
    expect(String((await incoming.read()).value)).toBe('hello')
    peer.sockets[0]!.resetAndDestroy()
    expect(await outcomeOf(incoming.read())).toThrow()
  })

  test.each([
    ['by its length', `content-length: ${2 * MIB}`],
    ['by its bytes', 'connection: close'],
  ])('that is too long, recognized %s, is dropped', async (_name, header) => {
    await start((socket, all) => {
      if (isComplete(all)) socket.write(`HTTP/1.1 200 OK\r\n${header}\r\n\r\n${'x'.repeat(2 * MIB)}`)
    })
    const incoming = await sendRequest()
    expect(await incoming.readWhole(MIB)).toBeUndefined()
    await until(() => peer.openCount === 0, 'the connection is closed')
  })

  const readAll = {
    'is read': async (incoming: IncomingResponse, count: (piece: Buffer) => void) => {
      for (;;) {
        const { value } = await incoming.read()
        if (value === undefined) return
        count(value)
      }
    },
    'is handed over': async (incoming: IncomingResponse, count: (piece: Buffer) => void) => {
      let pieces = 0
      const take = (piece: Buffer): boolean => {
        count(piece)
        return ++pieces % 3 !== 0
      }
      while (await incoming.readEach(take)) await Promise.resolve()
    },
  }

  test.each(Object.entries(readAll))('that is not read is paused, and complete when it %s', async (_how, readTo) => {
    const total = 64 * MIB
    const piece = 'x'.repeat(256 * KIB)
    let written = 0
    const writeMore = (socket: Peer['sockets'][number]): void => {
      while (written < total) {
        written += piece.length
        if (!socket.write(piece)) return void socket.once('drain', () => writeMore(socket))
      }
      socket.end()
    }
    await start((socket, all) => {
      if (!isComplete(all)) return
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`)
      writeMore(socket)
    })
    const incoming = await sendRequest()
    let [lastWritten, unchanged] = [0, 0]
    await until(() => {
      unchanged = written === lastWritten ? unchanged + 1 : 0
      lastWritten = written
      return unchanged > 20
    }, 'the sender is paused')
    expect(written).toBeLessThan(total / 2)
    let read = 0
    await readTo(incoming, piece => (read += piece.length))
    expect(read).toBe(total)
  })
})

describe('a stop', () => {
  test.each([
    ['before the head', ''],
    ['within the body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello'],
  ])('%s closes the connection immediately, and the reader gets an error', async (_name, text) => {
    await start((socket, all) => void (isComplete(all) && socket.write(text)))
    const stop = new Stop<Error>()
    const sending = sendRequest({ stop })
    const reading = text === '' ? sending : (await sending).readWhole(MIB)
    await until(() => peer.received.some(isComplete), 'the request has arrived')
    stop.stop(new Error('enough'))
    expect(await outcomeOf<unknown>(reading)).toThrow()
    await until(() => peer.openCount === 0, 'the connection is closed')
    if (text !== '') expect(await outcomeOf((await sending).read())).toThrow()
  })

  test('before the request sends nothing', async () => {
    await start(() => {})
    const stop = new Stop<Error>()
    stop.stop(new Error('enough'))
    expect(await outcomeOf(sendRequest({ stop }))).toThrow()
    expect(peer.sockets).toHaveLength(0)
  })

  test('while the client connects closes the connection that was opened too late', async () => {
    await start(() => {})
    const stop = new Stop<Error>()
    const sending = sendRequest({ stop })
    stop.stop(new Error('enough'))
    expect(await outcomeOf(sending)).toThrow()
    await until(() => peer.sockets.length === 1 && peer.openCount === 0, 'the connection is opened and closed')
    expect(peer.received).toEqual([''])
  })

  test('after the response does no harm to the next call on the connection', async () => {
    await start((socket, all) => void (isComplete(all) && socket.write(helloResponse)))
    const stop = new Stop<Error>()
    expect(await fetchBody({ stop })).toBe('hello')
    const next = sendRequest()
    stop.stop(new Error('enough'))
    expect(await bodyOf(await next)).toBe('hello')
    expect(peer.sockets).toHaveLength(1)
  })
})
