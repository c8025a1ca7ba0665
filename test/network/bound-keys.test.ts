// A key goes to no host but the one that it was given for: each way by which a request is made is led astray, as a bug
// would, and another server listens.

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
import type { Peer } from '../support/peer.ts'
import { startPeer } from '../support/peer.ts'

const client = openHttpClient()
const deadlines = new Deadlines(() => performance.now())
const answer = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}'
/** Who the keys were given for, and who would like to have them. */
let home: Peer
let thief: Peer
let account: string

beforeAll(async () => {
  const listen = () => startPeer((socket, all) => void (/\r\n\r\n/.test(all) && socket.write(answer)))
  home = await listen()
  thief = await listen()
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const key = await exportPKCS8(privateKey)
  account = JSON.stringify({ client_email: 'a@b.example', private_key: key, token_uri: `${home.url}/token` })
})
afterEach(() => {
  expect(thief.sockets).toHaveLength(0)
})
afterAll(async () => {
  client.close()
  await home.stop()
  await thief.stop()
})

interface Made {
  readonly provider: Provider
  readonly channel: Channel
}

function make(sign = 'bearer', key = 'k'): Made {
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
  const env = { ACME_KEY: key, ACME_URL: home.url }
  const files = [{ name: 'acme.json', text }]
  const catalogue = buildCatalogue({ files, env, builtInUrl: undefined, signing })
  return { provider: catalogue.providers.get('acme')!, channel: catalogue.channelsOf('acme')[0]! }
}

/** Its address is another's, and its key its own. */
const astray = ({ provider, channel }: Made): Made => ({ provider, channel: { ...channel, baseUrl: thief.url } })

const NO_OTHER =
  /^(?:.*: )?(?:a key must not sign requests to another origin|the URL is not on the origin of its channel)$/
const chat = Buffer.from('{"model":"acme/x","messages":[{"role":"user","content":"hi"}]}')

/** Each way by which requests are made, all the way to the socket. */
const ways: Readonly<Record<string, (made: Made) => Promise<unknown>>> = {
  async 'a call'({ provider, channel }) {
    const protocol = protocols['openai-chat']
    const candidate = { provider, upstreamProtocol: protocol, model: { id: 'x' } } as unknown as Candidate
    const hold = { call: protocol.readCall(chat), route: { permit: { caller: { accountId: 1 } } } }
    const exchange = { ...newCallParts(), protocol, attempt: newAttempt(candidate) }
    const meeting = { channel, hold, candidate, exchange } as unknown as AttemptContext
    const { request } = await adapt({ resolveMedia: async () => new Map(), reasoning: undefined as never }, meeting)
    await (await client.send(request, new Stop<Error>())).readWhole(100)
  },
  async 'a question beside calls'({ provider, channel }) {
    const ask = buildQueryUpstream(client.send, deadlines)
    await ask({ provider, channel, dialect: 'openai-chat', bytesMax: 100, msMax: 5_000 })
  },
  async 'a response that is kept there'({ provider, channel }) {
    const openQuery = buildOpenUpstreamQuery(client.send, deadlines)
    const { ask } = buildStoringUpstreams({ catalogue: undefined as never, openQuery, deadlines })
    const keeper = { provider, channel, protocol: protocols['openai-responses'], upstreamId: 'resp_1' }
    await (await ask(keeper, { method: 'GET' })).text()
  },
  async 'a count of tokens'({ provider, channel }) {
    const dialect = tokenCountDialects['anthropic-messages']
    const asked = { header: () => undefined, query: new URLSearchParams() } as unknown as RequestHead
    const call = dialect.readCall(chat, asked)
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

describe.each(Object.entries(ways))('%s', (_name, go) => {
  test('goes to the host of its key', async () => {
    const before = home.sockets.length + home.received.join('').length
    await go(make())
    expect(home.sockets.length + home.received.join('').length).toBeGreaterThan(before)
    expect(home.received.join('').toLowerCase()).toContain('authorization: bearer k')
  })

  test('goes to no other', async () => {
    await expect(go(astray(make()))).rejects.toThrow(NO_OTHER)
  })
})

describe('by any way to sign,', () => {
  const keys: Readonly<Record<string, () => string>> = {
    ...Object.fromEntries(Object.keys(signers).map(name => [name, () => 'k'])),
    'sigv4:bedrock': () => 'AKID:secret',
    'google-token': () => account,
  }

  test.each(Object.keys(keys))('%s, nothing is signed for another host', async sign => {
    const made = make(sign, keys[sign]!())
    const body = Buffer.from('{}')
    for (const url of othersThan(home.url, thief.url)) {
      const [request, dialect] = [{ url, headers: {}, body }, 'openai-chat']
      const ready = async () => await finishRequest(request, { ...made, dialect })
      await expect(ready()).rejects.toThrow('the URL of a request must be below the base URL of its channel')
      // And by itself, whoever asks it.
      const signed = async () => await signRequest(made.channel, dialect, request)
      await expect(signed()).rejects.toThrow('a key must not sign requests to another origin')
    }
  })
})

/** What begins as the address of the key and leads elsewhere, and what says the same in other words. */
const othersThan = (origin: string, other: string): readonly string[] => [
  ...[`${other}/chat`, `${origin}.evil.test/chat`, `${origin}1/chat`, `${origin}@evil.test/chat`],
  ...[`${origin}\\@evil.test/chat`, `${origin}:x@evil.test/`, origin, `${origin}?/chat`, `${origin}#/chat`],
  ...[origin.replace('http:', 'https:'), `//${new URL(origin).host}/chat`, ` ${origin}/chat`, '', '/chat'],
]

describe('a request that is signed already', () => {
  const signed = async (): Promise<OutgoingRequest> => {
    const request = { url: `${home.url}/chat`, headers: {}, body: Buffer.from('{}') }
    return await finishRequest(request, { ...make(), dialect: 'openai-chat' })
  }

  test.each(['POST', 'GET', 'DELETE', undefined] as const)('by %p is not sent to another host', async method => {
    const request = { ...(await signed()), ...(method !== undefined && { method }) }
    const send = (url: string) => client.send({ ...request, url }, new Stop<Error>())
    for (const url of othersThan(home.url, thief.url).filter(text => !isSame(text))) {
      await expect(send(url)).rejects.toThrow()
    }
    await expect(send(`${thief.url}/chat`)).rejects.toThrow('the URL is not on the origin of its channel')
  })

  /** In other words, the same address. */
  const isSame = (text: string): boolean => URL.parse(text)?.origin === new URL(home.url).origin

  test('is not sent on the road of another channel', async () => {
    const { networkPath: _own, ...request } = await signed()
    const road = { origin: thief.url, permitted: true }
    await expect(client.send({ ...request, networkPath: road }, new Stop<Error>())).rejects.toThrow(
      'not on the origin of its channel',
    )
    await expect(client.send(request, new Stop<Error>())).rejects.toThrow(
      'only private hosts may be called without TLS',
    )
  })
})

test('the token of an account is asked for where its file says, and nowhere else', async () => {
  const made = make('google-token', account)
  const before = home.received.join('').length
  const request = { url: `${home.url}/chat`, headers: {}, body: Buffer.from('{}') }
  const ready = async () => await finishRequest(request, { ...made, dialect: 'openai-chat' })
  await expect(ready()).rejects.toThrow('no valid token')
  expect(home.received.join('').slice(before)).toContain('POST /token HTTP/1.1')
})

test('requests are signed in one place, and all that is sent has passed it', () => {
  const root = join(import.meta.dir, '..', '..', 'src')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    name => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  )
  const naming = (word: RegExp): string[] =>
    files.filter(name => word.test(readFileSync(join(root, name), 'utf8'))).sort()
  expect(naming(/\bsignRequest\b/)).toEqual(['upstreams/request-signature.ts', 'upstreams/signing.ts'])
  expect(naming(/\.signs\b/)).toEqual(['upstreams/signing.ts'])
  expect(naming(/\bBun\.connect\b/)).toEqual(['http/client/dialer.ts'])
  // Those that are left carry no key of an upstream: to our own socket in the data folder, and from the command line to
  // a gateway, by the operator's word.
  expect(naming(/(?:await|return|=) fetch\(/)).toEqual([
    ...['cli/checks/doctor.ts', 'cli/remote.ts', 'http/server/control-socket.ts'],
  ])
  // Each of these is a way above.
  expect(naming(/\bfinishRequest\(/)).toEqual([
    'pipeline/40-adapt.ts',
    'pipeline/attempt/upstream-query.ts',
    'upstreams/request-signature.ts',
  ])
})
