// Requests on real sockets: what is sent, and which connections are reused or closed.

import { afterEach, describe, expect, test } from 'bun:test'
import { until } from '../../../test/support/gateway.ts'
import { pathTo } from '../../../test/support/network-paths.ts'
import type { Peer } from '../../../test/support/peer.ts'
import { startPeer } from '../../../test/support/peer.ts'
import { bounds } from '../../base/bounds.ts'
import { Stop } from '../../base/stop.ts'
import type { HttpClient } from './http-client.ts'
import { openHttpClient } from './http-client.ts'
import type { IncomingResponse } from './request.ts'

const KIB = 1024
const MIB = KIB * KIB
const hello = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'

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

interface Asked {
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array
  readonly stop?: Stop<Error>
}

function ask({ path = '/', headers = {}, body = 'x', stop = new Stop<Error>() }: Asked = {}) {
  return client.send({ url: peer.url + path, networkPath: pathTo(peer.url), headers, body: Buffer.from(body) }, stop)
}

const wholeOf = async (incoming: IncomingResponse): Promise<string> => String(await incoming.readWhole(MIB))
const answered = async (asked?: Asked): Promise<string> => wholeOf(await ask(asked))

/** A request is whole when its one-byte body is there. */
const isAsked = (all: string): boolean => all.endsWith('\r\n\r\nx')

describe('a request', () => {
  test('is the given headers and what HTTP needs, byte for byte', async () => {
    await start((socket, all) => void (all.endsWith('}') && socket.write(hello)))
    const headers = { 'content-type': 'application/json', 'X-Key': 'Gr\xfc\xdfe' }
    expect(await answered({ path: '/v1/a%20b?c=d&e#f', headers, body: '{"é":1}' })).toBe('hello')
    expect(peer.received).toEqual([
      [
        ...['POST /v1/a%20b?c=d&e HTTP/1.1', `Host: 127.0.0.1:${peer.port}`, 'content-type: application/json'],
        ...['X-Key: Gr\xfc\xdfe', 'Connection: keep-alive', 'Content-Length: 8', '', '{"\xc3\xa9":1}'],
      ].join('\r\n'),
    ])
  })

  test.each(['GET', 'DELETE', 'POST'] as const)('may be a %s without a body', async method => {
    await start((socket, all) => void (all.endsWith('\r\n\r\n') && socket.write(hello)))
    const url = `${peer.url}/v1/responses/resp_1?a=b`
    const request = { method, url, networkPath: pathTo(url), headers: {}, body: Buffer.alloc(0) }
    expect(await wholeOf(await client.send(request, new Stop<Error>()))).toBe('hello')
    const words = [`${method} /v1/responses/resp_1?a=b HTTP/1.1`, `Host: 127.0.0.1:${peer.port}`]
    expect(peer.received).toEqual([[...words, 'Connection: keep-alive', 'Content-Length: 0', '', ''].join('\r\n')])
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
    ['far too much', { a: 'b'.repeat(64 * KIB) }],
  ])('with %s is not sent', async (_name, headers) => {
    await start(() => {})
    // Its words are for the log, and a value may be a secret.
    const words = /^(?:a header that cannot|headers that are too long to) be sent$/
    await expect(ask({ headers: headers as Record<string, string> })).rejects.toThrow(words)
    expect(peer.sockets).toHaveLength(0)
  })

  test('that is long is sent as fast as it is read, on new and reused connections, and arrives unchanged', async () => {
    const body = Buffer.alloc(20 * MIB, 'abcdefghijklmnopqrstuvwxyz\n')
    let wanted = body.length
    await start(
      (socket, all) => {
        if (all.length - all.lastIndexOf('POST /') < wanted) return
        socket.write(hello)
      },
      socket => {
        socket.pause()
        setTimeout(() => socket.resume(), 50)
      },
    )
    for (const size of [body.length, 70 * KIB, body.length]) {
      const part = body.subarray(0, size)
      wanted = size
      expect(await answered({ body: part })).toBe('hello')
      const sent = peer.received[0]!
      expect(sent.slice(sent.lastIndexOf('\r\n\r\n') + 4) === part.toString('latin1')).toBe(true)
    }
    expect(peer.sockets).toHaveLength(1)
  })

  test.each(['http://u:p@127.0.0.1/', 'ftp://127.0.0.1/', 'nowhere'])('goes nowhere by %s', async url => {
    await start(() => {})
    const sent = client.send({ url, headers: {}, body: Buffer.from('x') }, new Stop<Error>())
    await expect(sent).rejects.toThrow()
  })
})

describe('a connection', () => {
  test('serves one call after the other, and as many at once as there are calls', async () => {
    await start((socket, all) => void (isAsked(all) && socket.write(hello)))
    for (let calls = 5; calls > 0; calls--) expect(await answered()).toBe('hello')
    expect(peer.sockets).toHaveLength(1)
    await Promise.all([answered(), answered(), answered()])
    expect(peer.sockets).toHaveLength(3)
    await Promise.all([answered(), answered(), answered()])
    expect(peer.sockets).toHaveLength(3)
    client.close()
    await until(() => peer.openCount === 0, 'idle connections are closed')
  })

  const lastOnes: readonly (readonly [string, string])[] = [
    ['that said it closes', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello'],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello'],
    ['with more behind it', `${hello}HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong`],
    [
      'with a length beside chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n' + '5\r\nhello\r\n0\r\n\r\n',
    ],
  ]
  test.each(lastOnes)('is not reused after a response %s', async (_name, text) => {
    await start((socket, all) => void (isAsked(all) && socket.write(text)))
    expect([await answered(), await answered()]).toEqual(['hello', 'hello'])
    expect(peer.sockets).toHaveLength(2)
    await until(() => peer.openCount === 0, 'both are closed')
  })

  test('is not reused when unrequested bytes arrive', async () => {
    await start((socket, all) => void (isAsked(all) && socket.write(hello)))
    await answered()
    peer.sockets[0]!.write(hello.replace('hello', 'wrong'))
    await until(() => peer.openCount === 0, 'it is closed')
    expect(await answered()).toBe('hello')
  })

  test('is not reused when it is closed meanwhile', async () => {
    await start((socket, all) => void (isAsked(all) && socket.write(hello)))
    await answered()
    peer.sockets[0]!.end()
    await until(() => peer.openCount === 0, 'it is closed')
    expect(await answered()).toBe('hello')
    expect(peer.sockets).toHaveLength(2)
  })

  test('is not reused when its response is complete before its request', async () => {
    await start(socket => {
      if (socket.bytesWritten > 0) return
      socket.pause()
      socket.write(hello)
    })
    expect(await answered({ body: Buffer.alloc(30 * MIB) })).toBe('hello')
    peer.sockets[0]!.resume()
    await until(() => peer.openCount === 0, 'it is closed')
  })

  test('that dies under a request is not replaced: nothing is sent twice', async () => {
    await start((socket, all) => {
      if (all.split('POST').length > 2) socket.resetAndDestroy()
      else if (isAsked(all)) socket.write(hello)
    })
    await answered()
    await expect(answered()).rejects.toThrow('127.0.0.1')
    expect(peer.received.join('').split('POST')).toHaveLength(3)
  })

  test('is reused after a response that was paused', async () => {
    // Its last byte is the one too many, so that it is whole in the moment in which it is held back.
    const length = bounds.unreadBytesMax
    await start((socket, all) => {
      if (isAsked(all)) socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${'x'.repeat(length)}`)
    })
    for (let calls = 3; calls > 0; calls--) {
      const incoming = await ask()
      let polls = 0
      await until(() => peer.sockets[0]!.writableLength === 0 && ++polls > 10, 'it has arrived')
      expect((await incoming.readWhole(MIB))!.length).toBe(length)
    }
    expect(peer.sockets).toHaveLength(1)
  })

  test('that is idle for too long is closed', async () => {
    await start((socket, all) => void (isAsked(all) && socket.write(hello)))
    client = openHttpClient({ idleSeconds: 1 })
    await answered()
    expect(peer.openCount).toBe(1)
    await until(() => peer.openCount === 0, 'it is closed')
    expect(await answered()).toBe('hello')
  })

  test('that is in use is not closed, however long that takes', async () => {
    await start((socket, all) => {
      if (isAsked(all)) setTimeout(() => socket.write(hello), all.split('POST').length > 2 ? 6_000 : 0)
    })
    client = openHttpClient({ idleSeconds: 1 })
    expect([await answered(), await answered()]).toEqual(['hello', 'hello'])
    expect(peer.sockets).toHaveLength(1)
  })

  test('is kept only up to the bound of idle connections', async () => {
    await start((socket, all) => void (isAsked(all) && setTimeout(() => socket.write(hello), 300)))
    const calls = bounds.idleConnectionsMax + 20
    await Promise.all(Array.from({ length: calls }, () => answered()))
    expect(peer.sockets).toHaveLength(calls)
    await until(() => peer.openCount === bounds.idleConnectionsMax, 'those beyond the bound are closed')
  })
})

describe('an answer', () => {
  test('is returned piece by piece, and its end as an empty piece', async () => {
    await start((socket, all) => void (isAsked(all) && socket.write('HTTP/1.1 200 OK\r\nA: b\r\na: c\r\n\r\none')))
    const incoming = await ask()
    expect([incoming.status, incoming.header('A'), incoming.header('b')]).toEqual([200, 'b, c', null])
    expect(String((await incoming.read()).value)).toBe('one')
    const second = incoming.read()
    peer.sockets[0]!.end('two')
    expect(String((await second).value)).toBe('two')
    expect([await incoming.read(), await incoming.read()]).toEqual([{}, {}])
  })

  test.each([
    ['its head', 'HTTP/1.1 200 O'],
    ['its body', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel'],
    ['its chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel'],
  ])('that ends within %s is an error', async (_name, text) => {
    await start((socket, all) => void (isAsked(all) && socket.end(text)))
    await expect(answered()).rejects.toThrow('closed before the end')
  })

  test('that ends with the connection is an error when the connection breaks', async () => {
    await start((socket, all) => void (isAsked(all) && socket.write('HTTP/1.1 200 OK\r\n\r\nhello')))
    const incoming = await ask()
    expect(String((await incoming.read()).value)).toBe('hello')
    peer.sockets[0]!.resetAndDestroy()
    await expect(incoming.read()).rejects.toThrow()
  })

  test.each([
    ['by its length', `content-length: ${2 * MIB}`],
    ['by its bytes', 'connection: close'],
  ])('that is longer than wanted, announced %s, is dropped', async (_name, header) => {
    await start((socket, all) => {
      if (isAsked(all)) socket.write(`HTTP/1.1 200 OK\r\n${header}\r\n\r\n${'x'.repeat(2 * MIB)}`)
    })
    const incoming = await ask()
    expect(await incoming.readWhole(MIB)).toBeUndefined()
    await until(() => peer.openCount === 0, 'it is closed')
  })

  test('that nobody reads is paused, and complete when it is read', async () => {
    const total = 64 * MIB
    const piece = 'x'.repeat(256 * KIB)
    let written = 0
    const writeOn = (socket: Peer['sockets'][number]): void => {
      while (written < total) {
        written += piece.length
        if (!socket.write(piece)) return void socket.once('drain', () => writeOn(socket))
      }
      socket.end()
    }
    await start((socket, all) => {
      if (!isAsked(all)) return
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`)
      writeOn(socket)
    })
    const incoming = await ask()
    let [seen, same] = [0, 0]
    await until(() => {
      same = written === seen ? same + 1 : 0
      seen = written
      return same > 20
    }, 'the sender is held back')
    expect(written).toBeLessThan(total / 2)
    let read = 0
    for (;;) {
      const { value } = await incoming.read()
      if (value === undefined) break
      read += value.length
    }
    expect(read).toBe(total)
  })
})

describe('a stop', () => {
  test.each([
    ['before the head', ''],
    ['within the body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello'],
  ])('%s closes the connection immediately, and the reader gets an error', async (_name, text) => {
    await start((socket, all) => void (isAsked(all) && socket.write(text)))
    const stop = new Stop<Error>()
    const asking = ask({ stop })
    const reading = text === '' ? asking : (await asking).readWhole(MIB)
    await until(() => peer.received.some(isAsked), 'the request is there')
    stop.stop(new Error('enough'))
    await expect(reading).rejects.toThrow()
    await until(() => peer.openCount === 0, 'it is closed')
    if (text !== '') await expect((await asking).read()).rejects.toThrow()
  })

  test('before anything sends nothing', async () => {
    await start(() => {})
    const stop = new Stop<Error>()
    stop.stop(new Error('enough'))
    await expect(ask({ stop })).rejects.toThrow()
    expect(peer.sockets).toHaveLength(0)
  })

  test('while it connects closes what was opened too late', async () => {
    await start(() => {})
    const stop = new Stop<Error>()
    const asking = ask({ stop })
    stop.stop(new Error('enough'))
    await expect(asking).rejects.toThrow()
    await until(() => peer.sockets.length === 1 && peer.openCount === 0, 'it is opened and closed')
    expect(peer.received).toEqual([''])
  })

  test('after the end does no harm to the next call on the connection', async () => {
    await start((socket, all) => void (isAsked(all) && socket.write(hello)))
    const stop = new Stop<Error>()
    expect(await answered({ stop })).toBe('hello')
    const next = ask()
    stop.stop(new Error('enough'))
    expect(await wholeOf(await next)).toBe('hello')
    expect(peer.sockets).toHaveLength(1)
  })
})
