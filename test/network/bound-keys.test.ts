// A key is sent to no host but its own: each kind of request is given a wrong host, as a bug would do, while another
// server listens there.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { exportPKCS8, generateKeyPair } from 'jose'
import { Deadlines } from '../../src/base/deadlines.ts'
import { Stop } from '../../src/base/stop.ts'
import { buildStoringUpstreams } from '../../src/features/stored-responses/upstream-responses.ts'
import type { CountInput } from '../../src/features/token-counts/provider-count.ts'
import { buildCountRequest, readCountAnswer } from '../../src/features/token-counts/provider-count.ts'
import { openHttpClient } from '../../src/http/client/http-client.ts'
import type { OutgoingRequest } from '../../src/http/client/request.ts'
import { adapt } from '../../src/pipeline/40-adapt.ts'
import type { AttemptContext } from '../../src/pipeline/attempt/translation.ts'
import {
  buildOpenUpstreamQuery,
  buildQueryUpstream,
  buildSendUpstreamQuery,
} from '../../src/pipeline/attempt/upstream-query.ts'
import type { Candidate } from '../../src/pipeline/exchange.ts'
import { newAttempt, newCallParts } from '../../src/pipeline/exchange.ts'
import type { RequestHead } from '../../src/protocols/protocol.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import { tokenCountDialects } from '../../src/protocols/token-counts/count-dialects.ts'
import { buildCatalogue } from '../../src/upstreams/catalogue.ts'
import type { Channel } from '../../src/upstreams/channel.ts'
import type { Provider } from '../../src/upstreams/provider.ts'
import { finishRequest } from '../../src/upstreams/request-signature.ts'
import { signers, signRequest } from '../../src/upstreams/signing.ts'
import { outcomeOf } from '../support/outcome.ts'
import type { Peer } from '../support/peer.ts'
import { startPeer } from '../support/peer.ts'

const client = openHttpClient()
const deadlines = new Deadlines(() => performance.now())
const answer = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}'
/** The host of the keys, and a host that must not get them. */
let rightHost: Peer
let wrongHost: Peer
let account: string

beforeAll(async () => {
  const listen = () => startPeer((socket, all) => void (/\r\n\r\n/.test(all) && socket.write(answer)))
  rightHost = await listen()
  wrongHost = await listen()
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const key = await exportPKCS8(privateKey)
  account = JSON.stringify({ client_email: 'a@b.example', private_key: key, token_uri: `${rightHost.url}/token` })
})
afterEach(() => {
  expect(wrongHost.sockets).toHaveLength(0)
})
afterAll(async () => {
  client.close()
  await rightHost.stop()
  await wrongHost.stop()
})

interface ProviderChannel {
  readonly provider: Provider
  readonly channel: Channel
}

function make(sign = 'bearer', key = 'k'): ProviderChannel {
  const text = JSON.stringify({
    id: 'acme',
    name: 'Acme',
    baseUrl: 'https://acme.example',
    keyEnv: 'ACME_KEY',
    baseUrlEnv: 'ACME_URL',
    speaks: { 'openai-chat': '/chat', 'anthropic-messages': '/messages', 'openai-responses': '/responses' },
    counts: { 'anthropic-messages': '/count' },
    can: { keepsResponses: true },
    sign,
    models: [],
  })
  const signing = { send: client.send, dateMs: () => 1_800_000_000_000 }
  const env = { ACME_KEY: key, ACME_URL: rightHost.url }
  const files = [{ name: 'acme.json', text }]
  const catalogue = buildCatalogue({ files, env, builtInUrl: undefined, signing })
  return { provider: catalogue.providers.get('acme')!, channel: catalogue.channelsOf('acme')[0]! }
}

/** The channel with its own key and a wrong host. */
const withWrongHost = ({ provider, channel }: ProviderChannel): ProviderChannel => ({
  provider,
  channel: { ...channel, baseUrl: wrongHost.url },
})

const NO_OTHER =
  /^(?:.*: )?(?:a key must not sign requests to another origin|the URL is not on the origin of its channel)$/
const chat = Buffer.from('{"model":"acme/x","messages":[{"role":"user","content":"hi"}]}')

/** Each kind of upstream request, all the way to the socket. */
const senders: Readonly<Record<string, (target: ProviderChannel) => Promise<unknown>>> = {
  async 'a call'({ provider, channel }) {
    const protocol = protocols['openai-chat']
    const candidate = { provider, upstreamProtocol: protocol, model: { id: 'x' } } as unknown as Candidate
    const hold = { call: protocol.readCall(chat), route: { permit: { caller: { accountId: 1 } } } }
    const exchange = { ...newCallParts(), protocol, attempt: newAttempt(candidate) }
    const context = { channel, hold, candidate, exchange } as unknown as AttemptContext
    const { request } = await adapt({ resolveMedia: async () => new Map(), reasoning: undefined as never }, context)
    await (await client.send(request, new Stop<Error>())).readWhole(100)
  },
  async 'a question beside calls'({ provider, channel }) {
    const query = buildQueryUpstream(client.send, deadlines)
    await query({ provider, channel, dialect: 'openai-chat', bytesMax: 100, msMax: 5_000 })
  },
  async 'a response that is kept there'({ provider, channel }) {
    const openQuery = buildOpenUpstreamQuery(client.send, deadlines)
    const { send } = buildStoringUpstreams({ catalogue: undefined as never, openQuery, deadlines })
    const keeper = { provider, channel, protocol: protocols['openai-responses'], upstreamId: 'resp_1' }
    await (await send(keeper, { method: 'GET' })).text()
  },
  async 'a count of tokens'({ provider, channel }) {
    const dialect = tokenCountDialects['anthropic-messages']
    const head = { header: () => undefined, query: new URLSearchParams() } as unknown as RequestHead
    const call = dialect.readCall(chat, head)
    const counting: CountInput = {
      dialect,
      provider,
      model: { id: 'x' },
      call,
      forwardedHeaders: {},
      conversation: () => undefined,
    }
    const sendQuery = buildSendUpstreamQuery(client.send, deadlines)
    const target = { provider, channel, dialect: dialect.protocol.name, bytesMax: 100, msMax: 5_000 }
    const answer = await sendQuery(target, buildCountRequest(counting, dialect, channel))
    expect(() => readCountAnswer(answer, dialect, channel)).toThrow('no count, with status 200')
  },
}

describe.each(Object.entries(senders))('%s', (_name, sendBy) => {
  test('is sent to the host of its key', async () => {
    const before = rightHost.sockets.length + rightHost.received.join('').length
    await sendBy(make())
    expect(rightHost.sockets.length + rightHost.received.join('').length).toBeGreaterThan(before)
    expect(rightHost.received.join('').toLowerCase()).toContain('authorization: bearer k')
  })

  test('is sent to no other host', async () => {
    expect(await outcomeOf(sendBy(withWrongHost(make())))).toThrow(NO_OTHER)
  })
})

describe('with every kind of signing,', () => {
  const keys: Readonly<Record<string, () => string>> = {
    ...Object.fromEntries(Object.keys(signers).map(name => [name, () => 'k'])),
    'sigv4:bedrock': () => 'AKID:secret',
    'google-token': () => account,
  }

  test.each(Object.keys(keys))('%s, nothing is signed for another host', async sign => {
    const target = make(sign, keys[sign]!())
    const body = Buffer.from('{}')
    for (const url of urlsElsewhere(rightHost.url, wrongHost.url)) {
      const [request, dialect] = [{ url, headers: {}, body }, 'openai-chat']
      const ready = async () => await finishRequest(request, { ...target, dialect })
      expect(await outcomeOf(ready())).toThrow('the URL of a request must be below the base URL of its channel')
      // The signer itself refuses, too, whoever calls it.
      const signed = async () => await signRequest(target.channel, dialect, request)
      expect(await outcomeOf(signed())).toThrow('a key must not sign requests to another origin')
    }
  })
})

/** URLs that begin like the key's URL and lead elsewhere, and other spellings of another URL. */
const urlsElsewhere = (origin: string, other: string): readonly string[] => [
  ...[`${other}/chat`, `${origin}.evil.test/chat`, `${origin}1/chat`, `${origin}@evil.test/chat`],
  ...[`${origin}\\@evil.test/chat`, `${origin}:x@evil.test/`, origin, `${origin}?/chat`, `${origin}#/chat`],
  ...[origin.replace('http:', 'https:'), `//${new URL(origin).host}/chat`, ` ${origin}/chat`, '', '/chat'],
]

describe('a signed request', () => {
  const signed = async (): Promise<OutgoingRequest> => {
    const request = { url: `${rightHost.url}/chat`, headers: {}, body: Buffer.from('{}') }
    return await finishRequest(request, { ...make(), dialect: 'openai-chat' })
  }

  test.each(['POST', 'GET', 'DELETE', undefined] as const)('by %p is not sent to another host', async method => {
    const request = { ...(await signed()), ...(method !== undefined && { method }) }
    const send = (url: string) => client.send({ ...request, url }, new Stop<Error>())
    for (const url of urlsElsewhere(rightHost.url, wrongHost.url).filter(text => !isSameOrigin(text))) {
      expect(await outcomeOf(send(url))).toThrow()
    }
    expect(await outcomeOf(send(`${wrongHost.url}/chat`))).toThrow('the URL is not on the origin of its channel')
  })

  /** Another spelling of the same origin. */
  const isSameOrigin = (text: string): boolean => URL.parse(text)?.origin === new URL(rightHost.url).origin

  test('is not sent on the network path of another channel', async () => {
    const { networkPath: _own, ...request } = await signed()
    const networkPath = { origin: wrongHost.url, permitted: true }
    expect(await outcomeOf(client.send({ ...request, networkPath: networkPath }, new Stop<Error>()))).toThrow(
      'not on the origin of its channel',
    )
    expect(await outcomeOf(client.send(request, new Stop<Error>()))).toThrow(
      'only private hosts may be called without TLS',
    )
  })
})

test("an account's token is requested where its key file says, and nowhere else", async () => {
  const target = make('google-token', account)
  const before = rightHost.received.join('').length
  const request = { url: `${rightHost.url}/chat`, headers: {}, body: Buffer.from('{}') }
  const ready = async () => await finishRequest(request, { ...target, dialect: 'openai-chat' })
  expect(await outcomeOf(ready())).toThrow('no valid token')
  expect(rightHost.received.join('').slice(before)).toContain('POST /token HTTP/1.1')
})

test('requests are signed in one place, and everything that is sent has passed it', () => {
  const root = join(import.meta.dir, '..', '..', 'src')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    name => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  )
  const filesWith = (pattern: RegExp): string[] =>
    files.filter(name => pattern.test(readFileSync(join(root, name), 'utf8'))).sort()
  expect(filesWith(/\bsignRequest\b/)).toEqual(['upstreams/request-signature.ts', 'upstreams/signing.ts'])
  expect(filesWith(/\.signs\b/)).toEqual(['upstreams/signing.ts'])
  expect(filesWith(/\bBun\.connect\b/)).toEqual(['http/client/dialer.ts'])
  // The remaining ones carry no key of an upstream: to the control socket in the data folder, from the command line to a
  // gateway that the operator names, and from a parent to the metrics of its processes.
  expect(filesWith(/(?:await|return|=) fetch\(/)).toEqual([
    ...['cli/checks/doctor.ts', 'cli/remote.ts', 'cli/serve-processes.ts', 'http/server/control-socket.ts'],
  ])
  // Each of these is a kind of request above.
  expect(filesWith(/\bfinishRequest\(/)).toEqual([
    'pipeline/40-adapt.ts',
    'pipeline/attempt/upstream-query.ts',
    'upstreams/request-signature.ts',
  ])
})
