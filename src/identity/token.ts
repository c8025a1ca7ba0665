// Session tokens (JWT), for people who are signed in. The algorithm is fixed, and all claims that the gateway sets are
// required. The signing secret is looked up in the ring by its fingerprint (`kid`), so a token cannot bring a key of its
// own.
//
// jose is loaded by the first token: a gateway that only serves calls does not need its 3 MB.

import { bounds } from '../base/bounds.ts'
import type { Secret } from '../base/secrets/secret.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'

const ALGORITHM = 'HS256'
const ISSUER = 'weir'
const AUDIENCE = 'weir:management'
const TYPE = 'weir+jwt'
const LEEWAY_SECONDS = 30

/** The claims of a token. They contain no permissions: these are looked up each time. */
export interface TokenClaims {
  /** The person. */
  readonly subject: string
  /** The session of the token. */
  readonly session: string
  /** The version of the person; a token with an older version is invalid. */
  readonly version: number
}

export interface TokenRequest extends TokenClaims {
  readonly nowMs: number
  readonly lifeSeconds: number
}

const keyOf = (secret: Secret): Uint8Array => new TextEncoder().encode(secret.reveal())

function signingKeyOf(ring: SecretRing, fingerprint: string | undefined): Uint8Array {
  const secret = ring.find(fingerprint ?? '')
  if (secret === undefined) throw new Error('the token was signed with an unknown secret')
  return keyOf(secret)
}

export async function mintToken(ring: SecretRing, mint: TokenRequest): Promise<string> {
  const { SignJWT } = await import('jose')
  const nowSeconds = Math.floor(mint.nowMs / 1000)
  return await new SignJWT({ sid: mint.session, ver: mint.version })
    .setProtectedHeader({ alg: ALGORITHM, typ: TYPE, kid: ring.newestFingerprint })
    .setSubject(mint.subject)
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setIssuedAt(nowSeconds)
    .setNotBefore(nowSeconds)
    .setExpirationTime(nowSeconds + mint.lifeSeconds)
    .sign(keyOf(ring.newest))
}

/** The claims of a token; undefined unless the gateway signed it and it is valid now. */
export async function verifyToken(ring: SecretRing, token: string, nowMs: number): Promise<TokenClaims | undefined> {
  if (token.length > bounds.tokenCharsMax) return undefined
  const { jwtVerify } = await import('jose')
  try {
    const { payload } = await jwtVerify(token, ({ kid }) => signingKeyOf(ring, kid), {
      algorithms: [ALGORITHM],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: TYPE,
      requiredClaims: ['sub', 'iat', 'nbf', 'exp', 'sid', 'ver'],
      clockTolerance: LEEWAY_SECONDS,
      currentDate: new Date(nowMs),
    })
    const { sub: subject, sid: session, ver: version, iat = 0, exp = 0 } = payload
    if (exp - iat > bounds.tokenSecondsMax) return undefined // the gateway issues no token with a longer life
    if (typeof subject !== 'string' || typeof session !== 'string' || typeof version !== 'number') return undefined
    return { subject, session, version }
  } catch {
    return undefined
  }
}
