// A management token is accepted only if the gateway signed it, it is valid now, and it is unchanged.

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

describe('of several secrets', () => {
  const rings = { old: ring.newest, fresh: buildSecretRing('t'.repeat(43)).newest }

  test('the newest signs, and tokens of all are accepted', async () => {
    const changing = buildSecretRing('s'.repeat(43))
    const make = (): Promise<string> => mintToken(changing, { ...holder, nowMs, lifeSeconds: 600 })
    const first = await make()
    changing.replace([rings.fresh, rings.old])
    const second = await make()
    for (const token of [first, second]) expect(await verifyToken(changing, token, nowMs)).toEqual(holder)
    expect(await verify(second)).toBeUndefined()
    changing.replace([rings.fresh])
    expect(await verifyToken(changing, first, nowMs)).toBeUndefined()
    expect(await verifyToken(changing, second, nowMs)).toEqual(holder)
  })

  test.each([
    ['no mark', undefined],
    ['a mark of none', '00000000'],
    ['an empty mark', ''],
    ['the mark of another of ours', fingerprintOf(rings.fresh)],
    ['a path', '../../etc/passwd'],
    ['a name that objects have', '__proto__'],
  ])('%s is refused', async (_, kid) => {
    const both = buildSecretRing('t'.repeat(43), 's'.repeat(43))
    const header = { alg: 'HS256', typ: 'weir+jwt', ...(kid !== undefined && { kid }) }
    const own = new TextEncoder().encode(secret.reveal())
    const token = await new SignJWT(good).setProtectedHeader(header).sign(own)
    expect(await verifyToken(both, token, nowMs)).toBeUndefined()
  })
})

describe('is refused', () => {
  const forgeries: readonly [string, Forgery][] = [
    ['another secret', { key: 't'.repeat(43) }],
    ['an empty secret', { key: '\0' }],
    ['another issuer', { claims: { iss: 'other' } }],
    ['no issuer', { claims: { iss: undefined } }],
    ['another audience', { claims: { aud: 'weir:calls' } }],
    ['no audience', { claims: { aud: undefined } }],
    ['a token of another type', { header: { typ: 'JWT' } }],
    ['expired', { claims: { exp: nowSeconds - 31 } }],
    ['an expiry in a year', { claims: { exp: nowSeconds + 31_536_000 } }],
    ['no expiry', { claims: { exp: undefined } }],
    ['no start', { claims: { nbf: undefined } }],
    ['no time of issue', { claims: { iat: undefined } }],
    ['no subject', { claims: { sub: undefined } }],
    ['no session', { claims: { sid: undefined } }],
    ['a session that is no text', { claims: { sid: { admin: true } } }],
    ['no version', { claims: { ver: undefined } }],
    ['a version that is no number', { claims: { ver: '3' } }],
    ['a longer hash with our own secret', { header: { alg: 'HS512' } }],
    ['HS384', { header: { alg: 'HS384' } }],
  ]

  test.each(forgeries)('%s', async (_, forgery) => {
    const token = await forge(forgery).catch(() => 'unsigned')
    expect(token).not.toBe('unsigned')
    expect(await verify(token)).toBeUndefined()
  })

  test('no type at all', async () => {
    const own = new TextEncoder().encode(secret.reveal())
    const token = await new SignJWT(good).setProtectedHeader({ alg: 'HS256', kid: ring.newestFingerprint }).sign(own)
    expect(await verify(token)).toBeUndefined()
  })

  test('alg none, with and without a signature', async () => {
    const token = new UnsecuredJWT(good).encode()
    const [, payload] = token.split('.')
    const head = Buffer.from('{"alg":"none","typ":"weir+jwt"}').toString('base64url')
    const ours = (await mint()).split('.')
    for (const text of [token, `${head}.${payload}.`, `${head}.${payload}.${ours[2]}`, `${head}.${payload}`]) {
      expect(await verify(text)).toBeUndefined()
    }
  })

  const signatureOf = (token: string): Buffer => Buffer.from(token.split('.')[2]!, 'base64url')

  test('every character of the payload and the signature changed', async () => {
    const token = await mint()
    const from = token.indexOf('.') + 1
    for (let at = from; at < token.length; at++) {
      if (token[at] === '.') continue
      const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
      // The last character of 32 bytes in base64 carries two bits that mean nothing.
      if (at === token.length - 1 && signatureOf(changed).equals(signatureOf(token))) continue
      expect([at, await verify(changed)]).toEqual([at, undefined])
    }
  })

  test.each(['', '.', '..', 'a.b.c', 'wk-', 'null', '{}', 'ey'.repeat(10_000)])('%j', async text => {
    expect(await verify(text)).toBeUndefined()
  })
})
