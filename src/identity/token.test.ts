// Tests that a management token is accepted only if the gateway signed it, it is valid now, and it is unchanged.

import { describe, expect, test } from 'bun:test'
import type { JWTPayload } from 'jose'
import { SignJWT, UnsecuredJWT } from 'jose'
import { fingerprintOf } from '../base/secrets/secret-fingerprint.ts'
import { buildSecretRing } from '../base/secrets/secret-ring.ts'
import { mintToken, verifyToken } from './token.ts'

const ring = buildSecretRing('s'.repeat(43))
const secret = ring.newest
const nowMs = Date.UTC(2026, 5, 1)
const nowSeconds = nowMs / 1_000
const holder = { subject: 'usr_00000000001', session: 'ses_00000000002', version: 3 }

const mint = (lifeSeconds = 600, atMs = nowMs): Promise<string> =>
  mintToken(ring, { ...holder, nowMs: atMs, lifeSeconds })

const good: JWTPayload = {
  sub: holder.subject,
  sid: holder.session,
  ver: holder.version,
  iss: 'weir',
  aud: 'weir:management',
  iat: nowSeconds,
  nbf: nowSeconds,
  exp: nowSeconds + 600,
}

interface Forgery {
  readonly claims?: Record<string, unknown>
  readonly header?: { alg?: string; typ?: string; kid?: string; crit?: string[] }
  readonly key?: string
}

async function forge({ claims = {}, header = {}, key = secret.reveal() }: Forgery = {}): Promise<string> {
  const payload = Object.fromEntries(Object.entries({ ...good, ...claims }).filter(([, value]) => value !== undefined))
  return await new SignJWT(payload)
    .setProtectedHeader({ alg: 'HS256', typ: 'weir+jwt', kid: ring.newestFingerprint, ...header })
    .sign(new TextEncoder().encode(key))
}

const verify = (token: string, atMs = nowMs) => verifyToken(ring, token, atMs)

describe('a token of the gateway', () => {
  test('names its holder', async () => {
    expect(await verify(await mint())).toEqual(holder)
    expect(await verify(await forge())).toEqual(holder)
  })

  test('expires, with a tolerance of half a minute', async () => {
    const token = await mint(600)
    expect(await verify(token, nowMs + 629_000)).toEqual(holder)
    expect(await verify(token, nowMs + 630_000)).toBeUndefined()
  })

  test('is not valid before its time', async () => {
    const token = await mint(600)
    expect(await verify(token, nowMs - 30_000)).toEqual(holder)
    expect(await verify(token, nowMs - 31_000)).toBeUndefined()
  })
})

describe('with several secrets', () => {
  const rings = { old: ring.newest, fresh: buildSecretRing('t'.repeat(43)).newest }

  test('the newest one signs, and tokens of all are accepted', async () => {
    const changingRing = buildSecretRing('s'.repeat(43))
    const make = (): Promise<string> => mintToken(changingRing, { ...holder, nowMs, lifeSeconds: 600 })
    const first = await make()
    changingRing.replace([rings.fresh, rings.old])
    const second = await make()
    for (const token of [first, second]) expect(await verifyToken(changingRing, token, nowMs)).toEqual(holder)
    expect(await verify(second)).toBeUndefined()
    changingRing.replace([rings.fresh])
    expect(await verifyToken(changingRing, first, nowMs)).toBeUndefined()
    expect(await verifyToken(changingRing, second, nowMs)).toEqual(holder)
  })

  test.each([
    ['without a fingerprint of its secret', undefined],
    ['with the fingerprint of no secret', '00000000'],
    ['with an empty fingerprint', ''],
    ['with the fingerprint of another secret of the gateway', fingerprintOf(rings.fresh)],
    ['with a path as its fingerprint', '../../etc/passwd'],
    ['with the name of an object property as its fingerprint', '__proto__'],
  ])('a token %s is refused', async (_, kid) => {
    const ringOfBoth = buildSecretRing('t'.repeat(43), 's'.repeat(43))
    const header = { alg: 'HS256', typ: 'weir+jwt', ...(kid !== undefined && { kid }) }
    const key = new TextEncoder().encode(secret.reveal())
    const token = await new SignJWT(good).setProtectedHeader(header).sign(key)
    expect(await verifyToken(ringOfBoth, token, nowMs)).toBeUndefined()
  })
})

describe('a token is refused:', () => {
  const forgeries: readonly [string, Forgery][] = [
    ['another secret', { key: 't'.repeat(43) }],
    ['an empty secret', { key: '\0' }],
    ['another issuer', { claims: { iss: 'other' } }],
    ['no issuer', { claims: { iss: undefined } }],
    ['another audience', { claims: { aud: 'weir:calls' } }],
    ['no audience', { claims: { aud: undefined } }],
    ['a token of another type', { header: { typ: 'JWT' } }],
    ['an expiry in the past', { claims: { exp: nowSeconds - 31 } }],
    ['an expiry in a year', { claims: { exp: nowSeconds + 31_536_000 } }],
    ['no expiry', { claims: { exp: undefined } }],
    ['no start', { claims: { nbf: undefined } }],
    ['no time of issue', { claims: { iat: undefined } }],
    ['no subject', { claims: { sub: undefined } }],
    ['no session', { claims: { sid: undefined } }],
    ['a session that is not a string', { claims: { sid: { admin: true } } }],
    ['no version', { claims: { ver: undefined } }],
    ['a version that is not a number', { claims: { ver: '3' } }],
    ['HS512 with the secret of the gateway', { header: { alg: 'HS512' } }],
    ['HS384', { header: { alg: 'HS384' } }],
  ]

  test.each(forgeries)('%s', async (_, forgery) => {
    const token = await forge(forgery).catch(() => 'unsigned')
    expect(token).not.toBe('unsigned')
    expect(await verify(token)).toBeUndefined()
  })

  test('no type', async () => {
    const key = new TextEncoder().encode(secret.reveal())
    const token = await new SignJWT(good).setProtectedHeader({ alg: 'HS256', kid: ring.newestFingerprint }).sign(key)
    expect(await verify(token)).toBeUndefined()
  })

  test('alg none, with and without a signature', async () => {
    const token = new UnsecuredJWT(good).encode()
    const [, payload] = token.split('.')
    const head = Buffer.from('{"alg":"none","typ":"weir+jwt"}').toString('base64url')
    const validParts = (await mint()).split('.')
    for (const text of [token, `${head}.${payload}.`, `${head}.${payload}.${validParts[2]}`, `${head}.${payload}`]) {
      expect(await verify(text)).toBeUndefined()
    }
  })

  const signatureOf = (token: string): Buffer => Buffer.from(token.split('.')[2]!, 'base64url')

  test('any character of the payload or the signature changed', async () => {
    const token = await mint()
    const from = token.indexOf('.') + 1
    for (let index = from; index < token.length; index++) {
      if (token[index] === '.') continue
      const changed = token.slice(0, index) + (token[index] === 'A' ? 'B' : 'A') + token.slice(index + 1)
      // The last character of 32 bytes in base64 has two unused bits.
      if (index === token.length - 1 && signatureOf(changed).equals(signatureOf(token))) continue
      expect([index, await verify(changed)]).toEqual([index, undefined])
    }
  })

  test.each(['', '.', '..', 'a.b.c', 'wk-', 'null', '{}', 'ey'.repeat(10_000)])('%j', async text => {
    expect(await verify(text)).toBeUndefined()
  })
})
