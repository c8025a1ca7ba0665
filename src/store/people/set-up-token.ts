// The one-time set-up token: whoever presents it becomes the owner of the site. Only its digest is stored, until the
// owner exists.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { bounds } from '../../base/bounds.ts'

/** The name of the setting that stores the digest. */
export const SETUP_SETTING = 'setup_token'

const TOKEN_BYTES = 16

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Hex. */
export const digestSetUpToken = (token: string): string => sha256(token).toString('hex')

export function createSetUpToken(nowMs: number): { readonly token: string; readonly kept: string } {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const kept = JSON.stringify({ digest: digestSetUpToken(token), expiresMs: nowMs + bounds.setUpMsMax })
  return { token, kept }
}

/** Whether a digest is that of the stored token, and the token has not expired. */
export function isStoredToken(digest: string, kept: string | undefined, nowMs: number): boolean {
  if (kept === undefined) return false
  const { digest: expected, expiresMs } = JSON.parse(kept) as { digest: string; expiresMs: number }
  return timingSafeEqual(sha256(digest), sha256(expected)) && nowMs < expiresMs
}
