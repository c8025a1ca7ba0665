// Upstreams are who they say they are, or the attempt fails before a byte of the request has left.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Stop } from '../base/stop.ts'
import { connect } from './connection.ts'
import { openGuardedFetch } from './guarded-fetch.ts'
import { openClient } from './outgoing.ts'

/** Its own authority, for weir.test and 127.0.0.1, made for this test and used nowhere else. */
const cert = `-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIUVVBupqGTm6LC/MSxv9c8zrTgQJQwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJd2Vpci50ZXN0MCAXDTI2MTExNTA1MjMwNFoYDzIxMjYxMDIy
MDUyMzA0WjAUMRIwEAYDVQQDDAl3ZWlyLnRlc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARcS7/VkNpmwyuC5MPQJmgkaCHmvgijZwLF29AlPzEdU7XSR7ZcP7JQ
b1GT/SJg4mBFIidnHNBjcFIJ6yd8SFYAo28wbTAdBgNVHQ4EFgQUERPYy9B7CWEZ
hQteiXofFQF0xy8wHwYDVR0jBBgwFoAUERPYy9B7CWEZhQteiXofFQF0xy8wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARggl3ZWlyLnRlc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSQAwRgIhAPzCBFZn6zd4J4spzIidE4oOx4S4CfxHhZZoDJN6OEYFAiEA
35m1/j24h21A9LegPqrr1wOFlwTjESzTJaQ/7SnwE1Y=
-----END CERTIFICATE-----`
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgzqtrh9j2DBV5dXVU
IuDtRO2jR/xUc9pTRPR76ClxzO+hRANCAARcS7/VkNpmwyuC5MPQJmgkaCHmvgij
ZwLF29AlPzEdU7XSR7ZcP7JQb1GT/SJg4mBFIidnHNBjcFIJ6yd8SFYA
-----END PRIVATE KEY-----`

let server: Bun.TCPSocketListener<{ received: number }>
let receivedBytes = 0
const names: unknown[] = []
const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'
const body = Buffer.alloc(3 * 1024 * 1024, 'x')

beforeAll(() => {
  server = Bun.listen<{ received: number }>({
    hostname: '127.0.0.1',
    port: 0,
    tls: { key, cert },
    socket: {
      open: socket => void (socket.data = { received: 0 }),
      handshake: socket => void names.push(socket.getServername()),
      data(socket, bytes) {
        receivedBytes += bytes.length
        socket.data.received += bytes.length
        if (bytes.at(-1) !== 0x0a) return // the request's last byte
        socket.write(answer)
      },
      error: () => {},
    },
  })
})
afterAll(() => server.stop(true))

interface Asked {
  readonly host?: string
  readonly ca?: string
}

async function ask({ host = '127.0.0.1', ca }: Asked): Promise<string> {
  const client = openClient(ca === undefined ? {} : { ca })
  try {
    const url = `https://${host}:${server.port}/`
    const request = { url, headers: {}, body: Buffer.concat([body, Buffer.from('\n')]) }
    const incoming = await client.send(request, new Stop<Error>())
    return String(await incoming.readWhole(100))
  } finally {
    client.close()
  }
}

describe('a certificate', () => {
  test('of an authority that is trusted is accepted, and a long body arrives', async () => {
    receivedBytes = 0
    expect(await ask({ ca: cert })).toBe('hello')
    expect(receivedBytes).toBeGreaterThan(body.length)
  })

  test.each([
    ['of an authority that nobody trusts', {}],
    ['of another host', { host: 'localhost', ca: cert }],
  ])('%s is refused, and nothing is sent', async (_name, asked: Asked) => {
    receivedBytes = 0
    await expect(ask(asked)).rejects.toThrow('the certificate was refused')
    expect(receivedBytes).toBe(0)
  })

  test('is looked at even where the environment says that it need not be', async () => {
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      await expect(ask({})).rejects.toThrow('the certificate was refused')
      await expect(ask({ host: 'localhost', ca: cert })).rejects.toThrow('the certificate was refused')
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before
    }
  })
})

describe('an address that was looked up before', () => {
  function converse(host: string): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>()
    const place = { host, address: '127.0.0.1', port: server.port, tls: true, ca: cert }
    const connection = connect(place, {
      received(_connection, bytes) {
        connection.destroy()
        resolve(String(bytes))
      },
      closed: (_connection, fault) => resolve(fault),
    })
    connection.send('words', Buffer.from('\n'))
    return promise
  }

  test('is where it connects to, under the name of the host', async () => {
    expect(await converse('weir.test')).toBe(answer)
    expect(names.at(-1)).toBe('weir.test')
  })

  test('must still be the host', async () => {
    expect(await converse('other.test')).toContain('the certificate was refused')
  })

  test.each([
    ['weir.test', 'media_refused: it is no image, audio, video, PDF or text'],
    ['other.test', /^media_unreachable: other\.test:\d+: the certificate was refused/],
  ])('is where media comes from, if it is %s', async (host, said) => {
    const { fetchMedia } = openGuardedFetch({ resolve: async () => ['127.0.0.1'], allow: () => true, ca: cert })
    await expect(fetchMedia(`https://${host}:${server.port}/`, new Stop<Error>())).rejects.toThrow(said)
  })
})
