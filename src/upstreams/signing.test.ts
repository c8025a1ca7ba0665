// Tests the signing methods, with test keys and a token endpoint on loopback.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { Secret } from '../base/secrets/secret.ts'
import { openHttpClient } from '../http/client/http-client.ts'
import { buildCatalogue } from './catalogue.ts'
import { ProviderFileError } from './provider.ts'
import { openSigV4 } from './sig-v4.ts'
import { isSigningMethod, signers, signRequest } from './signing.ts'

const START_MS = Date.parse('2026-11-15T12:00:00Z')
const request = { url: 'https://x.us-west-2.amazonaws.com/a', headers: {}, body: Buffer.from('{}') }

const client = openHttpClient()
const folder = mkdtempSync(join(tmpdir(), 'weir-signing-'))
let keys: Awaited<ReturnType<typeof generateKeyPair>>
let privateKey = ''
/** The forms that the token endpoint received, and its next answer. */
const forms: URLSearchParams[] = []
let answer = (): Response | Promise<Response> => new Response('{}', { status: 500 })
const endpoint = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    forms.push(new URLSearchParams(await request.text()))
    return await answer()
  },
})
const tokenUri = `http://127.0.0.1:${endpoint.port}/token`

beforeAll(async () => {
  keys = await generateKeyPair('RS256', { extractable: true })
  privateKey = await exportPKCS8(keys.privateKey)
})

afterAll(async () => {
  client.close()
  await endpoint.stop(true)
  rmSync(folder, { recursive: true, force: true })
})

function channels(sign: string, env: Record<string, string>, dateMs: () => number = () => START_MS) {
  const provider = { baseUrl: new URL(request.url).origin, keyEnv: 'ACME_KEY', baseUrlEnv: 'ACME_URL' }
  const text = JSON.stringify({ id: 'acme', name: 'Acme', ...provider, speaks: { chat: '/chat' }, sign, models: [] })
  const signing = { send: client.send, dateMs }
  const files = [{ name: 'acme.json', text }]
  return buildCatalogue({ files, env, builtInUrl: undefined, signing }).channelsOf('acme')
}

test('each method that sends the key sends it in one header', () => {
  expect(Object.values(signers).map(sign => sign(new Secret('k')))).toEqual([
    { 'authorization': 'Bearer k' },
    { 'api-key': 'k' },
    { 'x-api-key': 'k' },
    { 'x-goog-api-key': 'k' },
    {},
  ] as never)
})

test.each(['wax', 'constructor', 'sigv4', 'sigv4:', 'google-token:x', 'bearer:x', ''])(
  '%p is not a signing method',
  method => {
    expect(isSigningMethod(method)).toBe(false)
  },
)

describe('sigv4', () => {
  const credentials = { accessKeyId: 'AK', secretAccessKey: 'very/secret', sessionToken: 'session' }
  const expected = (region: string) =>
    openSigV4({ credentials, service: 'river', region, dateMs: () => START_MS })(request)

  test('signs with the key of its variable, for the service in the file and the region in the address', async () => {
    const [channel] = channels('sigv4:river', { ACME_KEY: 'AK:very/secret:session' })
    expect(await signRequest(channel!, 'chat', request)).toEqual(expected('us-west-2'))
  })

  test('signs with the keys of the vendor’s own variables, if its own is not set', async () => {
    const own = { AWS_ACCESS_KEY_ID: 'AK', AWS_SECRET_ACCESS_KEY: 'very/secret', AWS_SESSION_TOKEN: 'session' }
    const [channel] = channels('sigv4:river', own)
    expect(await signRequest(channel!, 'chat', request)).toEqual(expected('us-west-2'))
    expect(channels('sigv4:river', { AWS_ACCESS_KEY_ID: 'AK' })).toEqual([])
    expect(channels('bearer', own)).toEqual([])
  })

  test('takes the region from a variable if the address has none', async () => {
    const local = { ...request, url: 'http://127.0.0.1:9/a' }
    const env = { ACME_KEY: 'AK:very/secret:session', ACME_URL: 'http://127.0.0.1:9', AWS_REGION: 'eu-north-1' }
    const [channel] = channels('sigv4:river', env)
    const { authorization } = await signRequest(channel!, 'chat', local)
    expect(authorization).toInclude('/20261115/eu-north-1/river/aws4_request'.slice(1))
  })

  test('scrubs its keys from texts', () => {
    const [channel] = channels('sigv4:river', { ACME_KEY: 'AK:very/secret:session' })
    expect(channel!.key.scrub('AK, then very/secret, and session')).toBe('AK, then [secret], and [secret]')
    expect(Bun.inspect(channel)).not.toMatch(/very|session/)
  })

  test('refuses an invalid pair of keys at the start, without repeating it', () => {
    expect(() => channels('sigv4:river', { ACME_KEY: 'only-one' })).toThrow(ProviderFileError)
    expect(() => channels('sigv4:river', { ACME_KEY: 'only-one' })).toThrow(/^(?!.*only-one)/)
  })
})

describe('google-token', () => {
  let number = 0
  const tokenAnswer =
    (more: object = {}) =>
    () =>
      Response.json({ access_token: `token-${++number}`, expires_in: 3600, token_type: 'Bearer', ...more })
  function account(more: object = {}): string {
    const key = { private_key: privateKey, private_key_id: 'k1' }
    return JSON.stringify({ client_email: 'me@x.example', ...key, token_uri: tokenUri, ...more })
  }

  function open(dateMs: () => number = () => START_MS, key = account()) {
    forms.length = 0
    number = 0
    answer = tokenAnswer()
    const [channel] = channels('google-token', { ACME_KEY: key }, dateMs)
    return { channel: channel!, sign: async () => (await signRequest(channel!, 'chat', request)).authorization }
  }

  test('signs with a token that was fetched with the account', async () => {
    const { sign } = open()
    expect(await sign()).toBe('Bearer token-1')
    expect(forms).toHaveLength(1)
    expect(forms[0]!.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
    const { payload, protectedHeader } = await jwtVerify(forms[0]!.get('assertion')!, keys.publicKey, {
      issuer: 'me@x.example',
      audience: tokenUri,
      currentDate: new Date(START_MS),
    })
    expect(protectedHeader).toMatchObject({ alg: 'RS256', kid: 'k1' })
    expect(payload).toMatchObject({ scope: 'https://www.googleapis.com/auth/cloud-platform', iat: START_MS / 1000 })
  })

  test('caches a token until shortly before it expires', async () => {
    let nowMs = START_MS
    const { sign } = open(() => nowMs)
    await sign()
    nowMs += 3_299_000
    expect(await sign()).toBe('Bearer token-1')
    nowMs += 2_000
    expect(await sign()).toBe('Bearer token-2')
    expect(forms).toHaveLength(2)
  })

  test('fetches once, however many calls need a token', async () => {
    const { sign } = open()
    const all = await Promise.all(Array.from({ length: 20 }, sign))
    expect(new Set(all)).toEqual(new Set(['Bearer token-1']))
    expect(forms).toHaveLength(1)
  })

  test('fails one call when the endpoint refuses, and does not pass on its text', async () => {
    const { sign } = open()
    answer = () => new Response('{"error":"invalid_grant: very-private"}', { status: 400 })
    await expect(sign()).rejects.toThrow(/^the token endpoint answered with status 400$/)
    answer = tokenAnswer()
    expect(await sign()).toBe('Bearer token-1')
  })

  test.each([
    ['invalid JSON', 'x'],
    ['no token', '{"expires_in":3600}'],
    ['a token that is not a valid header', '{"access_token":"a\\r\\nb","expires_in":3600}'],
    ['null', 'null'],
  ])('refuses an answer with %s', async (_, text) => {
    const { sign } = open()
    answer = () => new Response(text)
    await expect(sign()).rejects.toThrow('no valid token')
  })

  test.each([{ expires_in: 0 }, { expires_in: 'soon' }, { expires_in: -1 }, { expires_in: 299 }])(
    'uses a token with %p once',
    async more => {
      const { sign } = open()
      answer = tokenAnswer(more)
      await sign()
      expect(await sign()).toBe('Bearer token-2')
    },
  )

  test('limits a token lifetime of days', async () => {
    let nowMs = START_MS
    const { sign } = open(() => nowMs)
    answer = tokenAnswer({ expires_in: 1e9 })
    await sign()
    nowMs += 3_600_000
    expect(await sign()).toBe('Bearer token-2')
  })

  test('fails the call when the endpoint is unreachable', async () => {
    const { sign } = open(() => START_MS, account({ token_uri: 'http://127.0.0.1:1/token' }))
    await expect(sign()).rejects.toThrow()
  })

  test('scrubs its token and its key from texts', async () => {
    const { channel, sign } = open()
    await sign()
    const scrubbed = channel.key.scrub(`you said token-1 and ${privateKey}`)
    // What is not a letter or a digit may stay at an end of the key.
    expect(scrubbed.replaceAll(/[\s=+/]|-----[A-Z ]+-----/g, '')).toBe('yousaid[secret]and[secret]')
    expect(Bun.inspect(channel)).not.toInclude('PRIVATE')
  })

  test('reads the account from a file that either variable names', async () => {
    const file = join(folder, 'account.json')
    writeFileSync(file, account())
    answer = tokenAnswer()
    for (const env of [{ ACME_KEY: file }, { GOOGLE_APPLICATION_CREDENTIALS: file }]) {
      const [channel] = channels('google-token', env)
      expect(await signRequest(channel!, 'chat', request)).toHaveProperty('authorization')
    }
  })

  test.each([
    ['a missing file', '/nowhere/account.json'],
    ['JSON of another kind', '{"type":"authorized_user"}'],
    ['broken JSON', '{"client_email":'],
    ['no private key', '{"client_email":"a@b.example","private_key":"x"}'],
    ...['ftp://x', 'http://169.254.169.254/token', 'http://a.example/token', 'https://u:p@a.example/token'].map(uri => [
      uri,
      `{"client_email":"a@b.example","private_key":"-- PRIVATE KEY","token_uri":"${uri}"}`,
    ]),
  ])('refuses %s at the start', (_, key) => {
    expect(() => channels('google-token', { ACME_KEY: key })).toThrow(ProviderFileError)
  })
})
