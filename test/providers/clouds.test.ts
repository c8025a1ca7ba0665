// Calls through the shipped provider files of the clouds, from the provider's data to what a server of that cloud
// receives and answers.

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

interface ReceivedCall {
  readonly url: URL
  readonly headers: Headers
  readonly body: string
}

let lastReceived: ReceivedCall | undefined
let answer: (seen: ReceivedCall) => Response | Promise<Response> = () => new Response('{}')
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(received) {
    const now = { url: new URL(received.url), headers: received.headers, body: await received.text() }
    if (now.url.pathname === '/token') return Response.json({ access_token: 'ya29.x', expires_in: 3600 })
    lastReceived = now
    return await answer(now)
  },
})
const local = `http://127.0.0.1:${server.port}`

afterAll(async () => {
  client.close()
  await server.stop(true)
})

interface CloudCall {
  readonly model: string
  readonly stream: boolean
  readonly body: object
  readonly headers?: Record<string, string>
}

/** Does what the gateway does with a call, from its provider on. */
async function callCloud(id: string, env: Record<string, string>, { model, stream, body, headers }: CloudCall) {
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

/** Checks the signature as AWS does: with the received headers and path, and the same secret. */
async function isSigned({ url, headers, body }: ReceivedCall): Promise<boolean> {
  const authorization = headers.get('authorization') ?? ''
  const names = /SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(';') ?? []
  const signer = new SignatureV4({ credentials: secret, region: 'eu-west-3', service: 'bedrock', sha256: Sha256 })
  const expected = await signer.sign(
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
  return expected.headers.authorization === authorization
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

test('Bedrock is signed for its region, gets its version in the body, and its own stream format is read', async () => {
  const events = [{ type: 'message_start' }, { type: 'content_block_delta', delta: { text: 'Grüße' } }]
  answer = async now =>
    (await isSigned(now))
      ? new Response(Buffer.concat(events.map(message)), { headers: { 'content-type': now.headers.get('accept')! } })
      : new Response('{"message":"The request signature does not match"}', { status: 403 })
  const env = { BEDROCK_CREDENTIALS: 'AKID:secret/key:session', BEDROCK_BASE_URL: local, AWS_REGION: 'eu-west-3' }
  const { incoming, provider } = await callCloud('bedrock', env, {
    model: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
    stream: true,
    body: { max_tokens: 9 },
    headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'context-1m-2025-08-07' },
  })
  expect(incoming.status).toBe(200)
  const path = '/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream'
  expect(lastReceived!.url.pathname).toBe(path)
  expect(JSON.parse(lastReceived!.body)).toEqual({
    max_tokens: 9,
    anthropic_version: 'bedrock-2023-05-31',
    anthropic_beta: ['context-1m-2025-08-07'],
  })
  expect(lastReceived!.headers.get('anthropic-version')).toBeNull()
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
  await callCloud('vertex', gemini, { model: 'gemini-2.5-pro', stream: true, body: {} })
  expect(lastReceived!.headers.get('authorization')).toBe('Bearer ya29.x')
  const models = '/v1/projects/p/locations/global/publishers/google/models'
  expect(lastReceived!.url.pathname + lastReceived!.url.search).toBe(
    `${models}/gemini-2.5-pro:streamGenerateContent?alt=sse`,
  )

  const claude = { VERTEX_ANTHROPIC_CREDENTIALS: credentials, VERTEX_ANTHROPIC_BASE_URL: local }
  await callCloud('vertex-anthropic', claude, {
    model: 'claude-sonnet-4-5@20250929',
    stream: false,
    body: { max_tokens: 9 },
  })
  expect(lastReceived!.headers.get('authorization')).toBe('Bearer ya29.x')
  expect(lastReceived!.url.pathname).toBe('/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict')
  expect(JSON.parse(lastReceived!.body)).toEqual({
    stream: false,
    max_tokens: 9,
    anthropic_version: 'vertex-2023-10-16',
  })
})

test('Azure is called with the deployment name that the operator configured', async () => {
  answer = () => Response.json({})
  const env = { AZURE_OPENAI_API_KEY: 'k', AZURE_OPENAI_ENDPOINT: `${local}/` }
  await callCloud('azure', env, { model: 'my-gpt', stream: false, body: {} })
  expect(lastReceived!.url.pathname).toBe('/openai/v1/responses')
  expect(lastReceived!.headers.get('api-key')).toBe('k')
  expect(JSON.parse(lastReceived!.body)).toEqual({ model: 'my-gpt', stream: false })
})
