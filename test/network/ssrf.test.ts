// The corpus, tried wherever an address comes from outside: no connection is made to a forbidden address.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Refusal } from '../../src/base/errors.ts'
import { Hint } from '../../src/base/hints.ts'
import { Stop } from '../../src/base/stop.ts'
import { openHttpClient } from '../../src/http/client/http-client.ts'
import { openMediaFetch } from '../../src/http/client/media-fetch.ts'
import { openWebhookClient, WebhookPostError } from '../../src/http/client/webhook-client.ts'
import { buildCatalogue } from '../../src/upstreams/catalogue.ts'
import { ProviderFileError } from '../../src/upstreams/provider.ts'
import { finishRequest } from '../../src/upstreams/request-signature.ts'
import { hosts as hostsOf } from '../support/network-paths.ts'
import { outcomeOf } from '../support/outcome.ts'
import type { Peer } from '../support/peer.ts'
import { startPeer } from '../support/peer.ts'
import { hosts, portsOfOthers, urls } from './corpus.ts'

/** A server that would answer as media and as a model. */
let peer: Peer
let resolvedNames: string[]

beforeAll(async () => {
  const answer = 'HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 2\r\n\r\n{}'
  peer = await startPeer((socket, all) => void (all.includes('\r\n\r\n') && socket.write(answer)))
})
afterAll(() => peer.stop())
beforeEach(() => {
  resolvedNames = []
})

/** Resolves every name to the peer, as an attacker's resolver would. */
const toLoopback = async (name: string): Promise<readonly string[]> => {
  resolvedNames.push(name)
  return ['127.0.0.1']
}

const provider = (baseUrl: string): string =>
  JSON.stringify({
    id: 'acme',
    name: 'Acme',
    baseUrl,
    keyEnv: 'ACME_KEY',
    baseUrlEnv: 'ACME_URL',
    speaks: { chat: '/chat' },
    sign: 'bearer',
    models: [],
  })

function channelAt({ file = 'https://api.example.com', moved = '' }) {
  const files = [{ name: 'acme.json', text: provider(file) }]
  const env = { ACME_KEY: 'k', ...(moved !== '' && { ACME_URL: moved }) }
  const catalogue = buildCatalogue({ files, env, builtInUrl: undefined })
  return { provider: catalogue.providers.get('acme')!, channel: catalogue.channelsOf('acme')[0]! }
}

test('the corpus is large enough, and has no duplicates', () => {
  const all = [...hosts, ...urls].map(([text]) => text)
  expect(all.length).toBeGreaterThanOrEqual(60)
  expect(new Set(all).size).toBe(all.length)
})

describe('media of a caller is not fetched from', () => {
  const { fetchMedia } = openMediaFetch({ resolve: toLoopback })
  async function isRefused(url: string): Promise<void> {
    const before = peer.sockets.length
    const fault = await fetchMedia(url, new Stop<Error>()).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(fault).toBeInstanceOf(Refusal)
    expect([url, (fault as Refusal).code, peer.sockets.length]).toEqual([url, 'media_refused', before])
  }

  test.each(hosts)('%s (%s)', async host => {
    await isRefused(`http://${host}:${peer.port}/`)
    await isRefused(`https://${host}:${peer.port}/`)
    await isRefused(`HTTP:\\\\${host}:${peer.port}/`)
  })

  test.each(urls)('%s (%s)', async url => {
    await isRefused(url)
    expect(resolvedNames).toEqual([])
  })

  test('ports of other services', async () => {
    for (const port of portsOfOthers) await isRefused(`http://1.1.1.1:${port}/`)
  })
})

describe("an operator's own address", () => {
  const at = (host: string): string => `http://${host}:${peer.port}/v1`

  test.each(hosts.filter(([, row]) => row === 'private'))('may be %s', host => {
    const { channel } = channelAt({ moved: at(host) })
    expect(channel.networkPath).toMatchObject({ origin: new URL(at(host)).origin, permitted: true })
  })

  test.each(hosts.filter(([, row]) => row === 'never'))('may not be %s, and the start says so', host => {
    for (const scheme of ['http', 'https']) {
      expect(() => channelAt({ moved: `${scheme}://${host}:${peer.port}/v1` })).toThrow(ProviderFileError)
      expect(() => channelAt({ moved: `${scheme}://${host}` })).toThrow(/^ACME_URL must not be a cloud metadata/)
    }
  })

  test.each(urls)('may not be %s (%s), and the start says so', url => {
    expect(() => channelAt({ moved: url })).toThrow(ProviderFileError)
    expect(() => channelAt({ moved: url })).toThrow(/^ACME_URL must [^@]*$/)
  })
})

describe("the address in a provider's file", () => {
  test.each(hosts.filter(([, row]) => row === 'never'))('may not be %s, and the start says so', host => {
    expect(() => channelAt({ file: `https://${host}/v1` })).toThrow(
      /^acme\.json: "baseUrl" must not be a cloud metadata/,
    )
  })

  test.each(urls)('may not be %s (%s), and the start says so', url => {
    expect(() => channelAt({ file: url })).toThrow(/^acme\.json: "baseUrl" must /)
  })

  test('may be a private address, even without TLS, but not a name of one', () => {
    expect(channelAt({ file: 'http://10.1.2.3:8000/v1' }).channel.networkPath.permitted).toBe(true)
    const message = 'acme.json: "baseUrl" must be https, unless WEIR_PRIVATE_HOSTS names api.example.com'
    expect(() => channelAt({ file: 'http://api.example.com/v1' })).toThrow(message)
    expect(channelAt({ file: 'https://api.example.com/v1' }).channel.networkPath.permitted).toBe(false)
  })

  async function answerAt(privateHosts: string): Promise<number> {
    const client = openHttpClient({ resolve: toLoopback, privateHosts: hostsOf(privateHosts) })
    const builtChannel = channelAt({ file: `https://api.example.com:${peer.port}` })
    const request = { url: `${builtChannel.channel.baseUrl}/chat`, headers: {}, body: Buffer.from('{}') }
    const ready = await finishRequest(request, { ...builtChannel, dialect: 'chat' })
    return (await client.send({ ...ready, networkPath: { ...ready.networkPath, tlsMs: 100 } }, new Stop<Error>()))
      .status
  }

  test('does not lead into the private network by a name, unless the operator lists it', async () => {
    const before = peer.sockets.length
    expect(await outcomeOf(answerAt(''))).toThrow('cannot connect: its host is not public')
    expect(await outcomeOf(answerAt('other.example.com, 10.0.0.0/8'))).toThrow('not public')
    expect([peer.sockets.length, resolvedNames]).toEqual([before, ['api.example.com', 'api.example.com']])
    // The peer is not a TLS server: the test checks only whether it was reached.
    for (const listed of ['api.example.com', '127.0.0.0/8', 'API.example.com.', '127.0.0.1']) {
      expect(await outcomeOf(answerAt(listed))).toThrow('cannot connect: no TLS handshake within 100 ms')
    }
    expect(peer.sockets.length).toBe(before + 4)
  })
})

test.each(['169.254.169.254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', 'fe80::1', 'localhost', ''])(
  'no name leads to %j, whatever is allowed',
  async address => {
    const privateHosts = hostsOf('0.0.0.0/0, ::/0, api.example.com')
    const client = openHttpClient({ resolve: async () => ['127.0.0.1', address], privateHosts })
    const { provider: acme, channel } = channelAt({ moved: `http://api.example.com:${peer.port}` })
    const request = { url: `${channel.baseUrl}/chat`, headers: {}, body: Buffer.from('{}') }
    const ready = await finishRequest(request, { provider: acme, channel, dialect: 'chat' })
    const before = peer.sockets.length
    expect(await outcomeOf(client.send(ready, new Stop<Error>()))).toThrow('is never allowed')
    expect(peer.sockets.length).toBe(before)
  },
)

describe('a webhook is not sent to', () => {
  const { post, checkUrl } = openWebhookClient({ resolve: toLoopback })
  async function isRefused(url: string): Promise<void> {
    const before = peer.sockets.length
    const fault = await post({ url, headers: {}, body: '{}' }).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(fault).toBeInstanceOf(WebhookPostError)
    expect([url, peer.sockets.length]).toEqual([url, before])
  }
  test.each(hosts)('%s', async host => {
    for (const scheme of ['https', 'http']) {
      const url = `${scheme}://${host}:${peer.port}/`
      await isRefused(url)
      expect([url, checkUrl(url) instanceof Hint]).toEqual([url, true])
    }
  })
  test.each(urls)('%s', async url => await isRefused(url))
  test.each(portsOfOthers)('port %d', async port => await isRefused(`https://api.example.com:${port}/`))
  test('a name that leads to this machine', async () => {
    await isRefused(`https://api.example.com:${peer.port}/`)
    expect(resolvedNames).toEqual(['api.example.com'])
  })
  test('a public host without TLS', async () => await isRefused(`http://api.example.com:${peer.port}/`))
})
