// Management tokens (JWT). The algorithm is ours and pinned, every claim we set is required back, and which secret has
// signed one is looked up among ours by its mark (`kid`): a token brings no key of its own.
//
// jose is loaded by the first token: a gateway that only serves calls does without its 3 MB.

import type { Secret } from '../base/secret.ts'
import type { SecretRing } from '../base/secret-ring.ts'

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

function signerOf(ring: SecretRing, mark: string | undefined): Uint8Array {
  const secret = ring.find(mark ?? '')
  if (secret === undefined) throw new Error('it was signed with no secret of ours')
  return keyOf(secret)
}

export async function mintToken(ring: SecretRing, mint: TokenMint): Promise<string> {
  const { SignJWT } = await import('jose')
  const nowSeconds = Math.floor(mint.nowMs / 1000)
  return await new SignJWT({ role: mint.role })
    .setProtectedHeader({ alg: ALGORITHM, typ: TYPE, kid: ring.newestMark })
    .setSubject(mint.subject)
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setIssuedAt(nowSeconds)
    .setNotBefore(nowSeconds)
    .setExpirationTime(nowSeconds + mint.lifeSeconds)
    .sign(keyOf(ring.newest))
}

/** Whose token it is, or undefined for anything but a token that we signed and that is in its time. */
export async function verifyToken(ring: SecretRing, token: string, nowMs: number): Promise<TokenHolder | undefined> {
  const { jwtVerify } = await import('jose')
  try {
    const { payload } = await jwtVerify(token, ({ kid }) => signerOf(ring, kid), {
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
