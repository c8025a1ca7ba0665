// Management tokens (JWT). The algorithm is ours and pinned, every claim we set is required back, and which secret has
// signed one is looked up among ours by its mark (`kid`): a token brings no key of its own.
//
// jose is loaded by the first token: a gateway that only serves calls does without its 3 MB.

import { bounds } from '../base/bounds.ts'
import type { Secret } from '../base/secrets/secret.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'

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

function signerOf(ring: SecretRing, mark: string | undefined): Uint8Array {
  const secret = ring.find(mark ?? '')
  if (secret === undefined) throw new Error('it was signed with no secret of ours')
  return keyOf(secret)
}

export async function mintToken(ring: SecretRing, mint: TokenMint): Promise<string> {
  const { SignJWT } = await import('jose')
  const nowSeconds = Math.floor(mint.nowMs / 1000)
  return await new SignJWT({ sid: mint.session, ver: mint.version })
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
  if (token.length > bounds.tokenCharsMax) return undefined
  const { jwtVerify } = await import('jose')
  try {
    const { payload } = await jwtVerify(token, ({ kid }) => signerOf(ring, kid), {
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
