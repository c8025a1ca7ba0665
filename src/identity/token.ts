// Management tokens (JWT). The algorithm is ours and pinned, and every claim we set is required back.
//
// jose is loaded by the first token: a gateway that only serves calls does without its 3 MB.

import type { Secret } from '../base/secret.ts'

const ALGORITHM = 'HS256'
const ISSUER = 'weir'
const AUDIENCE = 'weir:management'
const TYPE = 'weir+jwt'
const LEEWAY_SECONDS = 30

export interface TokenHolder {
  readonly subject: string
  readonly role: string
}

export interface TokenMint extends TokenHolder {
  readonly nowMs: number
  readonly lifeSeconds: number
}

const keyOf = (secret: Secret): Uint8Array => new TextEncoder().encode(secret.reveal())

export async function mintToken(secret: Secret, mint: TokenMint): Promise<string> {
  const { SignJWT } = await import('jose')
  const nowSeconds = Math.floor(mint.nowMs / 1000)
  return await new SignJWT({ role: mint.role })
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
  const { jwtVerify } = await import('jose')
  try {
    const { payload } = await jwtVerify(token, keyOf(secret), {
      algorithms: [ALGORITHM],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: TYPE,
      requiredClaims: ['sub', 'iat', 'nbf', 'exp', 'role'],
      clockTolerance: LEEWAY_SECONDS,
      currentDate: new Date(nowMs),
    })
    if (typeof payload.role !== 'string' || typeof payload.sub !== 'string') return undefined
    return { subject: payload.sub, role: payload.role }
  } catch {
    return undefined
  }
}
