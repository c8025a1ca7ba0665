// A DNS server that gives one answer to the check and another to the connection, and a server that redirects.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Stop } from '../../src/base/stop.ts'
import { openHttpClient } from '../../src/http/client/http-client.ts'
import { openMediaFetch } from '../../src/http/client/media-fetch.ts'
import { until } from '../support/gateway.ts'
import { hosts } from '../support/network-paths.ts'
import { outcomeOf } from '../support/outcome.ts'
import type { Peer } from '../support/peer.ts'
import { startPeer } from '../support/peer.ts'
import type { DnsServer } from './dns-server.ts'
import { startDnsServer } from './dns-server.ts'

/** A server that only the gateway can reach. */
let inside: Peer
let dns: DnsServer
/** An address that stands for a public one here: it is listed, and only tests listen there. */
const OUTSIDE = '127.0.0.9'
const INSIDE = '127.0.0.1'
const privateHosts = hosts(OUTSIDE)
const answer = 'HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 3\r\n\r\nPNG'

beforeEach(async () => {
  dns = await startDnsServer()
  inside = await startPeer((socket, all) => void (all.includes('\r\n\r\n') && socket.write(answer)))
})
afterEach(async () => {
  await dns.stop()
  await inside.stop()
})

const at = (host: string): string => `http://${host}:${inside.port}/a.png`

describe('a name with another address the second time', () => {
  test('is fetched from the first address for media, and never from the private network', async () => {
    dns.answers.set('rebind.test', [[OUTSIDE], [INSIDE]])
    const { fetchMedia } = openMediaFetch({ resolve: dns.resolve, privateHosts })
    // No server listens outside at this port: a second query would find the server inside.
    const { url, stop } = { url: at('rebind.test'), stop: new Stop<Error>() }
    expect(await fetchMedia(url, stop).catch((fault: unknown) => fault)).toMatchObject({ code: 'media_unreachable' })
    expect([dns.queries, inside.sockets.length]).toEqual([['rebind.test'], 0])
  })

  test('is refused when it is resolved again', async () => {
    let nowMs = 0
    dns.answers.set('rebind.test', [[OUTSIDE], [INSIDE]])
    const { fetchMedia } = openMediaFetch({ resolve: dns.resolve, privateHosts, nowMs: () => nowMs })
    const codeOf = (): Promise<unknown> =>
      fetchMedia(at('rebind.test'), new Stop<Error>()).then(
        () => 'fetched',
        ({ code }) => code as unknown,
      )
    expect(await codeOf()).toBe('media_unreachable')
    nowMs += 60_000
    expect(await codeOf()).toBe('media_refused')
    expect([dns.queries.length, inside.sockets.length]).toEqual([2, 0])
  })

  test('is refused when both addresses come at once', async () => {
    dns.answers.set('rebind.test', [[OUTSIDE, INSIDE]])
    const { fetchMedia } = openMediaFetch({ resolve: dns.resolve, privateHosts })
    expect(await fetchMedia(at('rebind.test'), new Stop<Error>()).catch((fault: unknown) => fault)).toMatchObject({
      code: 'media_refused',
    })
    expect(inside.sockets).toHaveLength(0)
  })

  test('leads a channel to the first address', async () => {
    dns.answers.set('rebind.test', [[OUTSIDE], [INSIDE]])
    const client = openHttpClient({ resolve: dns.resolve, privateHosts })
    const url = `https://rebind.test:${inside.port}/v1`
    const networkPath = { origin: new URL(url).origin, permitted: false }
    const send = () =>
      client.send({ url, networkPath: networkPath, headers: {}, body: Buffer.from('{}') }, new Stop<Error>())
    for (const _time of [1, 2]) expect(await outcomeOf(send())).toThrow('cannot connect: ECONNREFUSED')
    expect([dns.queries, inside.sockets.length]).toEqual([['rebind.test'], 0])
  })
})

test('a name that does not exist has its own error message', async () => {
  const client = openHttpClient({ resolve: dns.resolve })
  const url = 'https://missing.test/'
  const networkPath = { origin: 'https://missing.test', permitted: false }
  const sent = client.send({ url, networkPath: networkPath, headers: {}, body: Buffer.from('{}') }, new Stop<Error>())
  expect(await outcomeOf(sent)).toThrow('missing.test:443: cannot connect: its host name does not resolve: ENOTFOUND')
})

describe('a redirect', () => {
  let outside: Peer
  beforeEach(async () => {
    const location = `http://127.0.0.1:${inside.port}/latest/meta-data/`
    const status = (all: string): string => /\/(30\d)/.exec(all)?.[1] ?? '302'
    outside = await startPeer((socket, all) => {
      if (!all.includes('\r\n\r\n')) return
      socket.write(`HTTP/1.1 ${status(all)} Go\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`)
    })
  })
  afterEach(() => outside.stop())

  test.each([301, 302, 303, 307, 308])('with %d is not followed by any client', async status => {
    dns.answers.set('outside.test', [[INSIDE]])
    const options = { resolve: dns.resolve, privateHosts: hosts('outside.test') }
    const url = `http://outside.test:${outside.port}/${status}`
    const media = openMediaFetch(options).fetchMedia(url, new Stop<Error>())
    expect(await media.catch((fault: unknown) => fault)).toMatchObject({ code: 'media_refused' })
    const client = openHttpClient(options)
    const networkPath = { origin: new URL(url).origin, permitted: true }
    const incoming = await client.send(
      { url, networkPath: networkPath, headers: {}, body: Buffer.from('{}') },
      new Stop<Error>(),
    )
    expect(incoming.status).toBe(status)
    client.close()
    await until(() => outside.openCount === 0, 'both are over')
    expect([outside.sockets.length, inside.sockets.length]).toEqual([2, 0])
  })
})
