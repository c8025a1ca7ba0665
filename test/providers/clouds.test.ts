// Calls by the shipped files of the clouds, from a provider's data to what a server of that cloud would see and say.

import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Sha256 } from '@aws-crypto/sha256-js'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { SignatureV4 } from '@smithy/signature-v4'
import { exportPKCS8, generateKeyPair } from 'jose'
import { Stop } from '../../src/base/stop.ts'
import { openHttpClient } from '../../src/http/client/http-client.ts'
import { frameData } from '../../src/http/sse.ts'
import { buildCatalogue } from '../../src/upstreams/catalogue.ts'
import { streamFormat } from '../../src/upstreams/quirks.ts'
import { finishRequest } from '../../src/upstreams/request-signature.ts'

const NOW_MS = Date.parse('2026-11-15T12:00:00Z')
const client = openHttpClient()

interface Seen {
  readonly url: URL
  readonly headers: Headers
  readonly body: string
}

let seen: Seen | undefined
let answer: (seen: Seen) => Response | Promise<Response> = () => new Response('{}')
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(received) {
    const now = { url: new URL(received.url), headers: received.headers, body: await received.text() }
    if (now.url.pathname === '/token') return Response.json({ access_token: 'ya29.x', expires_in: 3600 })
    seen = now
    return await answer(now)
  },
})
const local = `http://127.0.0.1:${server.port}`

afterAll(async () => {
  client.close()
  await server.stop(true)
})

interface Asked {
  readonly model: string
  readonly stream: boolean
  readonly body: object
  readonly headers?: Record<string, string>
}

/** What a gateway does with a call, from its provider on. */
async function ask(id: string, env: Record<string, string>, { model, stream, body, headers }: Asked) {
  const name = `${id}.json`
  const files = [{ name, text: readFileSync(join(import.meta.dir, '..', '..', 'providers', name), 'utf8') }]
  const signing = { send: client.send, dateMs: () => NOW_MS }
  const catalogue = buildCatalogue({ files, env, builtInUrl: undefined, signing })
  const provider = catalogue.providers.get(id)!
  const [channel] = catalogue.channelsOf(id)
  const [dialect, at] = Object.entries(provider.speaks)[0]!
  expect(provider.models.has(model) || provider.openModels).toBe(true)
  const request = {
    url: channel!.baseUrl + (stream ? at.stream : at.plain).replace('{model}', model),
    headers: { 'content-type': 'application/json', 'accept': stream ? 'text/event-stream' : '*/*', ...headers },
    body: Buffer.from(JSON.stringify({ model, stream, ...body })),
  }
  const ready = await finishRequest(request, { provider, channel: channel!, dialect })
  const incoming = await client.send(ready, new Stop<Error>())
  return { incoming, provider }
}

const secret = { accessKeyId: 'AKID', secretAccessKey: 'secret/key', sessionToken: 'session' }

/** As AWS does it: with what came, path as it came, and the same secret. */
async function isSigned({ url, headers, body }: Seen): Promise<boolean> {
  const authorization = headers.get('authorization') ?? ''
  const names = /SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(';') ?? []
  const signer = new SignatureV4({ credentials: secret, region: 'eu-west-3', service: 'bedrock', sha256: Sha256 })
  const again = await signer.sign(
    {
      method: 'POST',
      protocol: 'http:',
      hostname: url.host,
      path: url.pathname,
      body,
      headers: Object.fromEntries(names.map(name => [name, headers.get(name) ?? ''])),
    },
    { signingDate: new Date(NOW_MS) },
  )
  return again.headers.authorization === authorization
}

const codec = new EventStreamCodec(
  bytes => Buffer.from(bytes as Uint8Array).toString('utf8'),
  text => Buffer.from(text),
)

function message(data: object): Uint8Array {
  const headers = { ':event-type': 'chunk', ':message-type': 'event', ':content-type': 'application/json' }
  const typed = Object.entries(headers).map(([name, value]) => [name, { type: 'string' as const, value }])
  const bytes = Buffer.from(JSON.stringify(data)).toString('base64')
  return codec.encode({ headers: Object.fromEntries(typed) as never, body: Buffer.from(JSON.stringify({ bytes })) })
}

test('Bedrock is signed for its region, told its version in the body, and read from its own stream', async () => {
  const events = [{ type: 'message_start' }, { type: 'content_block_delta', delta: { text: 'Grüße' } }]
  answer = async now =>
    (await isSigned(now))
      ? new Response(Buffer.concat(events.map(message)), { headers: { 'content-type': now.headers.get('accept')! } })
      : new Response('{"message":"The request signature does not match"}', { status: 403 })
  const env = { BEDROCK_CREDENTIALS: 'AKID:secret/key:session', BEDROCK_BASE_URL: local, AWS_REGION: 'eu-west-3' }
  const { incoming, provider } = await ask('bedrock', env, {
    model: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
    stream: true,
    body: { max_tokens: 9 },
    headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'context-1m-2025-08-07' },
  })
  expect(incoming.status).toBe(200)
  const path = '/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream'
  expect(seen!.url.pathname).toBe(path)
  expect(JSON.parse(seen!.body)).toEqual({
    max_tokens: 9,
    anthropic_version: 'bedrock-2023-05-31',
    anthropic_beta: ['context-1m-2025-08-07'],
  })
  expect(seen!.headers.get('anthropic-version')).toBeNull()
  const format = streamFormat(provider)
  expect(incoming.header('content-type')).toBe(format.contentType)
  const frames = format.open(1024).push((await incoming.readWhole(4096))!)
  expect(frames.map(frame => JSON.parse(frameData(frame)!) as unknown)).toEqual(events)
  expect(String(frames[0])).toStartWith('event: message_start\n')
})

test('Vertex AI gets a token of its account, for Gemini and for Claude', async () => {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const credentials = JSON.stringify({
    client_email: 'me@x.example',
    private_key: await exportPKCS8(privateKey),
    token_uri: `${local}/token`,
  })
  answer = () => Response.json({})
  const gemini = { VERTEX_CREDENTIALS: credentials, VERTEX_BASE_URL: `${local}/v1/projects/p/locations/global` }
  await ask('vertex', gemini, { model: 'gemini-2.5-pro', stream: true, body: {} })
  expect(seen!.headers.get('authorization')).toBe('Bearer ya29.x')
  const models = '/v1/projects/p/locations/global/publishers/google/models'
  expect(seen!.url.pathname + seen!.url.search).toBe(`${models}/gemini-2.5-pro:streamGenerateContent?alt=sse`)

  const claude = { VERTEX_ANTHROPIC_CREDENTIALS: credentials, VERTEX_ANTHROPIC_BASE_URL: local }
  await ask('vertex-anthropic', claude, { model: 'claude-sonnet-4-5@20250929', stream: false, body: { max_tokens: 9 } })
  expect(seen!.headers.get('authorization')).toBe('Bearer ya29.x')
  expect(seen!.url.pathname).toBe('/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict')
  expect(JSON.parse(seen!.body)).toEqual({ stream: false, max_tokens: 9, anthropic_version: 'vertex-2023-10-16' })
})

test('Azure is asked for a deployment by the name that its operator gave it', async () => {
  answer = () => Response.json({})
  const env = { AZURE_OPENAI_API_KEY: 'k', AZURE_OPENAI_ENDPOINT: `${local}/` }
  await ask('azure', env, { model: 'my-gpt', stream: false, body: {} })
  expect(seen!.url.pathname).toBe('/openai/v1/responses')
  expect(seen!.headers.get('api-key')).toBe('k')
  expect(JSON.parse(seen!.body)).toEqual({ model: 'my-gpt', stream: false })
})
