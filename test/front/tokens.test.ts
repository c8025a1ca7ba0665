// Forged management tokens at the door of /api/web/*: whatever is wrong with one, it is 401.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { markOf } from '../../src/base/seal.ts'
import { Secret } from '../../src/base/secret.ts'
import type { JWTHeaderParameters } from 'jose'
import { SignJWT, UnsecuredJWT } from 'jose'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import { ask, bearer, expectChatError, expectStages, reached } from './asking.ts'

let harness: Harness
let secret: string

beforeAll(async () => {
  harness = await startHarness()
  secret = readFileSync(join(harness.folder, 'jwt-secret'), 'utf8').trim()
})
afterAll(() => harness.stop())

const me = (token: string): Promise<RawAnswer> => rawRequest(harness.url, ask('GET', '/api/web/me', bearer(token)))

const nowSeconds = Math.floor(Date.now() / 1_000)
const claims = {
  sub: 'operator',
  role: 'owner',
  iss: 'weir',
  aud: 'weir:management',
  iat: nowSeconds,
  nbf: nowSeconds,
  exp: nowSeconds + 600,
}

interface Forgery {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Partial<JWTHeaderParameters>
  readonly secret?: string
}

/** A token as ours are, but for what is given. */
async function sign(forgery: Forgery): Promise<string> {
  const payload = Object.entries({ ...claims, ...forgery.claims }).filter(([, value]) => value !== undefined)
  return await new SignJWT(Object.fromEntries(payload))
    .setProtectedHeader({ alg: 'HS256', typ: 'weir+jwt', kid: markOf(new Secret(secret)), ...forgery.header })
    .sign(new TextEncoder().encode(forgery.secret ?? secret))
}

test('one that is right in everything opens the door', async () => {
  const answer = await me(await sign({}))
  expect(answer.status).toBe(200)
  expect(JSON.parse(answer.body.toString())).toEqual({ role: 'owner' })
})

const forgeries: readonly [string, () => Promise<string>][] = [
  ['alg none', async () => new UnsecuredJWT(claims).encode()],
  ['alg none with a signature', async () => `${new UnsecuredJWT(claims).encode()}${(await sign({})).split('.')[2]}`],
  ['another secret', () => sign({ secret: 'x'.repeat(43) })],
  ['another audience', () => sign({ claims: { aud: 'weir:calls' } })],
  ['another issuer', () => sign({ claims: { iss: 'somebody' } })],
  ['another type', () => sign({ header: { typ: 'JWT' } })],
  ['expired', () => sign({ claims: { iat: nowSeconds - 900, nbf: nowSeconds - 900, exp: nowSeconds - 300 } })],
  ['not yet valid', () => sign({ claims: { nbf: nowSeconds + 300 } })],
  ['no expiry', () => sign({ claims: { exp: undefined } })],
  ['no subject', () => sign({ claims: { sub: undefined } })],
  ['HS512', () => sign({ header: { alg: 'HS512' } })],
  ['tampered with', async () => {
    const [head, , signature] = (await sign({})).split('.')
    const payload = Buffer.from(JSON.stringify({ ...claims, role: 'god' })).toString('base64url')
    return `${head}.${payload}.${signature}`
  }],
  ['without its signature', async () => (await sign({})).replace(/[^.]+$/, '')],
  ['no token at all', async () => 'hello'],
]

test.each(forgeries)('%s: 401', async (_, forge) => {
  const token = await forge()
  const answer = await me(token)
  const { error } = expectChatError(answer, 401)
  expect([error.type, error.code]).toEqual(['authentication_error', 'token_invalid'])
  expectStages(answer, reached.nothing)
  expect(answer.head + answer.body.toString()).not.toContain(token)
  expect(harness.logs.join('')).not.toContain(token)
})
