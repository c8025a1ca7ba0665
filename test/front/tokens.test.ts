// Forged management tokens at /api/web/*: whatever is wrong with one, it gets a 401 that says nothing more.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac, generateKeyPairSync, sign as signBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner, signedIn } from '../support/people.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import { ask, bearer, expectChatError, expectStages, reached } from './asking.ts'

let harness: Harness
let secret: string
let owner: Person

beforeAll(async () => {
  harness = await startHarness()
  secret = readFileSync(join(harness.folder, 'jwt-secret'), 'utf8').trim()
  owner = await setUpOwner(harness)
})
afterAll(() => harness.stop())

const getMe = (token: string): Promise<RawAnswer> => rawRequest(harness.url, ask('GET', '/api/web/me', bearer(token)))

type Json = Readonly<Record<string, unknown>>

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part: string): Json => JSON.parse(Buffer.from(part, 'base64url').toString()) as Json
const headOf = (token: string): Json => decode(token.split('.')[0]!)
const claimsOf = (token: string): Json => decode(token.split('.')[1]!)
const hmac = (text: string, key: string | Buffer, hash = 'sha256'): string =>
  createHmac(hash, key).update(text).digest('base64url')

interface Forgery {
  readonly claims?: Json
  readonly header?: Json
  readonly key?: string | Buffer
  readonly hash?: string
}

const without = (value: Json): Json =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined))

/** A token of the owner, signed with the gateway's secret, with the given changes. */
function forge({ claims = {}, header = {}, key = secret, hash }: Forgery = {}): string {
  const head = without({ ...headOf(owner.token), ...header })
  const text = `${encode(head)}.${encode(without({ ...claimsOf(owner.token), ...claims }))}`
  return `${text}.${hmac(text, key, hash)}`
}

const nowSeconds = (): number => Math.floor(Date.now() / 1_000)

test('a correct token is accepted', async () => {
  expect(forge()).toBe(owner.token)
  const answer = await getMe(forge())
  expect(answer.status).toBe(200)
  expect(JSON.parse(answer.body.toString())).toMatchObject({ id: owner.id, role: 'owner' })
})

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const elliptic = generateKeyPairSync('ed25519')

function signedBy(header: Json, sign: (text: string) => Buffer): string {
  const text = `${encode({ ...headOf(owner.token), ...header })}.${owner.token.split('.')[1]}`
  return `${text}.${sign(text).toString('base64url')}`
}

const otherSecret = 'x'.repeat(43)
const publicPem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString()
const oct = (key: string): Json => ({ kty: 'oct', k: Buffer.from(key).toString('base64url') })

const forgeries: Readonly<Record<string, () => string | Promise<string>>> = {
  'alg none, unsigned': () => forge({ header: { alg: 'none' } }).replace(/[^.]+$/, ''),
  'alg none, signed': () => forge({ header: { alg: 'none' } }),
  'alg None': () => forge({ header: { alg: 'None' } }).replace(/[^.]+$/, ''),
  'alg NONE in two parts': () =>
    forge({ header: { alg: 'NONE' } })
      .split('.')
      .slice(0, 2)
      .join('.'),
  'no alg': () => forge({ header: { alg: undefined } }),
  'an alg that is a list': () => forge({ header: { alg: ['HS256'] } }),
  'hs256 in small letters': () => forge({ header: { alg: 'hs256' } }),
  'HS384': () => forge({ header: { alg: 'HS384' }, hash: 'sha384' }),
  'HS512': () => forge({ header: { alg: 'HS512' }, hash: 'sha512' }),
  'HS512 that is called HS256': () => forge({ hash: 'sha512' }),
  'RS256 with our secret as its key': () => forge({ header: { alg: 'RS256' } }),
  'RS256 by a key of their own': () =>
    signedBy({ alg: 'RS256' }, text => signBytes('sha256', Buffer.from(text), rsa.privateKey)),
  'EdDSA by a key of their own': () =>
    signedBy({ alg: 'EdDSA' }, text => signBytes(null, Buffer.from(text), elliptic.privateKey)),
  'HS256 with a public key as its secret': () => forge({ key: publicPem }),
  'another secret': () => forge({ key: otherSecret }),
  'an empty secret': () => forge({ key: '' }),
  'our secret, decoded': () => forge({ key: Buffer.from(secret, 'base64url') }),
  'no kid': () => forge({ header: { kid: undefined } }),
  'a kid that is a path': () => forge({ header: { kid: '../../../../dev/null' }, key: '' }),
  'a kid that is SQL': () => forge({ header: { kid: "x' UNION SELECT 'x" }, key: 'x' }),
  'a kid of a prototype': () => forge({ header: { kid: '__proto__' }, key: 'undefined' }),
  'a kid that is a number': () => forge({ header: { kid: 0 }, key: otherSecret }),
  'a key of its own (jwk)': () => forge({ header: { jwk: oct(otherSecret) }, key: otherSecret }),
  'an address of a key (jku)': () => forge({ header: { jku: 'http://127.0.0.1/keys' }, key: otherSecret }),
  'a certificate of its own (x5c)': () => forge({ header: { x5c: ['AAAA'] }, key: otherSecret }),
  'a critical extension': () => forge({ header: { crit: ['b64'], b64: false } }),
  'expired': () => forge({ claims: { iat: nowSeconds() - 900, nbf: nowSeconds() - 900, exp: nowSeconds() - 31 } }),
  'not yet valid': () => forge({ claims: { nbf: nowSeconds() + 300 } }),
  'an expiry that is text': () => forge({ claims: { exp: '9999999999' } }),
  'an expiry beyond all numbers': async () => {
    const text = `${owner.token.split('.')[0]}.${Buffer.from(
      JSON.stringify(claimsOf(owner.token)).replace(/"exp":\d+/, '"exp":1e999'),
    ).toString('base64url')}`
    return `${text}.${hmac(text, secret)}`
  },
  'another issuer': () => forge({ claims: { iss: 'somebody' } }),
  'another audience': () => forge({ claims: { aud: 'weir:calls' } }),
  'another type': () => forge({ header: { typ: 'JWT' } }),
  'no type': () => forge({ header: { typ: undefined } }),
  ...Object.fromEntries(
    ['iss', 'aud', 'sub', 'iat', 'nbf', 'exp', 'sid', 'ver'].map(name => [
      `no ${name}`,
      () => forge({ claims: { [name]: undefined } }),
    ]),
  ),
  'an older version': () => forge({ claims: { ver: Number(claimsOf(owner.token).ver) - 1 } }),
  'a later version': () => forge({ claims: { ver: Number(claimsOf(owner.token).ver) + 1 } }),
  'a version as text': () => forge({ claims: { ver: String(claimsOf(owner.token).ver) } }),
  'a session that never was': () => forge({ claims: { sid: 'ses_00000000001' } }),
  'a session that is SQL': () => forge({ claims: { sid: "ses_' OR 1=1 --" } }),
  'the session of another': async () => {
    const member = await addPerson(harness, owner.ask)
    return forge({ claims: { sid: claimsOf(member.token).sid } })
  },
  'another as the holder of our session': async () => {
    const member = await addPerson(harness, owner.ask)
    return forge({ claims: { sub: member.id } })
  },
  'the operator with our session': () => forge({ claims: { sub: 'cli', ver: 0 } }),
  'a session that was signed out': async () => {
    const secondSession = await signedIn(harness, owner.email)
    const headers = { cookie: secondSession.cookie }
    await fetch(`${harness.url}/api/auth/sign-out`, { method: 'POST', headers })
    return secondSession.token
  },
  'somebody who was removed': async () => {
    const member = await addPerson(harness, owner.ask)
    await owner.ask('DELETE', `web/users/${member.id}`)
    return member.token
  },
  'somebody who is disabled': async () => {
    const member = await addPerson(harness, owner.ask)
    await owner.ask('PATCH', `web/users/${member.id}`, { disabled: true })
    return member.token
  },
  'claims changed after it was signed': () => {
    const [head, , signature] = owner.token.split('.')
    return `${head}.${encode({ ...claimsOf(owner.token), sub: 'usr_00000000001' })}.${signature}`
  },
  'without its signature': () => owner.token.replace(/[^.]+$/, ''),
  'a part too many': () => `${owner.token}.${owner.token.split('.')[2]}`,
  'five parts, as if encrypted': () => `${owner.token}.x.y`,
  'in JSON': () => encode({ payload: owner.token.split('.')[1], signatures: [] }),
  'a list as its claims': () => {
    const text = `${owner.token.split('.')[0]}.${encode([claimsOf(owner.token)])}`
    return `${text}.${hmac(text, secret)}`
  },
  'a megabyte of it': () => forge({ claims: { more: 'x'.repeat(16_000) } }),
  'no token at all': () => 'hello',
}

test('there are at least forty forgeries', () => {
  expect(Object.keys(forgeries).length).toBeGreaterThanOrEqual(40)
})

test.each(Object.entries(forgeries))('%s: 401', async (_, make) => {
  const token = await make()
  const answer = await getMe(token)
  const { error } = expectChatError(answer, 401)
  expect([error.type, error.code]).toEqual(['authentication_error', 'token_invalid'])
  expectStages(answer, reached.nothing)
  expect(answer.head + answer.body.toString()).not.toContain(token)
  expect(harness.logs.join('')).not.toContain(token)
})

test('the owner is still signed in after all forgeries', async () => {
  expect((await getMe(owner.token)).status).toBe(200)
})
