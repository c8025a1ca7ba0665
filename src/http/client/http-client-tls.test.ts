// Tests that a request fails before any of its bytes is sent if the certificate of the upstream is invalid.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cert, key } from '../../../test/support/certificate.ts'
import { loopback, pathTo } from '../../../test/support/network-paths.ts'
import { outcomeOf } from '../../../test/support/outcome.ts'
import { Stop } from '../../base/stop.ts'
import { openHttpClient } from './http-client.ts'
import { openMediaFetch } from './media-fetch.ts'

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
        if (bytes.at(-1) !== 0x0a) return // the request ends with this byte
        socket.write(answer)
      },
      error: () => {},
    },
  })
})
afterAll(() => server.stop(true))

interface RequestOptions {
  readonly host?: string
  readonly ca?: string
}

/** Sends a request. All names resolve to the loopback, which the operator has allowed. */
async function sendRequest({ host = '127.0.0.1', ca }: RequestOptions): Promise<string> {
  const client = openHttpClient({ resolve: async () => ['127.0.0.1'], ...(ca !== undefined && { ca }) })
  try {
    const url = `https://${host}:${server.port}/`
    const request = { url, networkPath: pathTo(url), headers: {}, body: Buffer.concat([body, Buffer.from('\n')]) }
    const incoming = await client.send(request, new Stop<Error>())
    return String(await incoming.readWhole(100))
  } finally {
    client.close()
  }
}

describe('a certificate', () => {
  test('of an authority that is trusted is accepted, and a long body arrives', async () => {
    receivedBytes = 0
    expect(await sendRequest({ ca: cert })).toBe('hello')
    expect(receivedBytes).toBeGreaterThan(body.length)
  })

  test.each([
    ['of an authority that is not trusted', {}],
    ['of another host', { host: 'localhost', ca: cert }],
  ])('%s is refused, and nothing is sent', async (_name, options: RequestOptions) => {
    receivedBytes = 0
    expect(await outcomeOf(sendRequest(options))).toThrow('the certificate was refused')
    expect(receivedBytes).toBe(0)
  })

  test('is checked even if an environment variable turns the check off', async () => {
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      expect(await outcomeOf(sendRequest({}))).toThrow('the certificate was refused')
      expect(await outcomeOf(sendRequest({ host: 'localhost', ca: cert }))).toThrow('the certificate was refused')
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before
    }
  })
})

describe('a resolved address', () => {
  test('is where the client connects, with the name of the host', async () => {
    expect(await sendRequest({ host: 'weir.test', ca: cert })).toBe('hello')
    expect(names.at(-1)).toBe('weir.test')
  })

  test('must have a certificate for the name of the host', async () => {
    expect(await outcomeOf(sendRequest({ host: 'other.test', ca: cert }))).toThrow('the certificate was refused')
  })

  test.each([
    ['weir.test', 'media_refused: it is no image, audio, video, PDF or text'],
    ['other.test', /^media_unreachable: other\.test:\d+: the certificate was refused/],
  ])('is where media is fetched, with the certificate of the host %s', async (host, message) => {
    const { fetchMedia } = openMediaFetch({ resolve: async () => ['127.0.0.1'], privateHosts: loopback, ca: cert })
    expect(await outcomeOf(fetchMedia(`https://${host}:${server.port}/`, new Stop<Error>()))).toThrow(message)
  })
})
