// Management tokens (JWT). The algorithm is ours and pinned, and every claim we set is required back.
//
// jose is loaded by the first token: a gateway that only serves calls does without its 3 MB.

import { bounds } from '../base/bounds.ts'
import type { Secret } from '../base/secret.ts'

const ALGORITHM = 'HS256'
const ISSUER = 'weir'
const AUDIENCE = 'weir:management'
const TYPE = 'weir+jwt'
const LEEWAY_SECONDS = 30

/** What a token says of its holder. What they may do is not in it: that is looked up each time. */
export interface TokenHolder {
  /** Whose it is. */
  readonly subject: string
  /** The session that it is of. */
  readonly session: string
  /** Of whoever it is: a token of an older one is void. */
  readonly version: number
}

export interface TokenMint extends TokenHolder {
  readonly nowMs: number
  readonly lifeSeconds: number
}

const keyOf = (secret: Secret): Uint8Array => new TextEncoder().encode(secret.reveal())

export async function mintToken(secret: Secret, mint: TokenMint): Promise<string> {
  const { SignJWT } = await import('jose')
  const nowSeconds = Math.floor(mint.nowMs / 1000)
  return await new SignJWT({ sid: mint.session, ver: mint.version })
    .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
    .setSubject(mint.subject)
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setIssuedAt(nowSeconds)
    .setNotBefore(nowSeconds)
    .setExpirationTime(nowSeconds + mint.lifeSeconds)
    .sign(keyOf(secret))
}

/** Whose token it is, or undefined for anything but a token that we signed and that is in its time. */
export async function verifyToken(secret: Secret, token: string, nowMs: number): Promise<TokenHolder | undefined> {
  if (token.length > bounds.tokenCharsMax) return undefined
  const { jwtVerify } = await import('jose')
  try {
    const { payload } = await jwtVerify(token, keyOf(secret), {
      algorithms: [ALGORITHM],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: TYPE,
      requiredClaims: ['sub', 'iat', 'nbf', 'exp', 'sid', 'ver'],
      clockTolerance: LEEWAY_SECONDS,
      currentDate: new Date(nowMs),
    })
    const { sub: subject, sid: session, ver: version, iat = 0, exp = 0 } = payload
    if (exp - iat > bounds.tokenSecondsMax) return undefined // none of ours lives that long
    if (typeof subject !== 'string' || typeof session !== 'string' || typeof version !== 'number') return undefined
    return { subject, session, version }
  } catch {
    return undefined
  }
}
