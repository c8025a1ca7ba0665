// The one-time token that makes whoever shows it the owner. Of it only the digest is kept, until somebody has.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { bounds } from '../../base/bounds.ts'

/** Where it is kept. */
export const SETUP_SETTING = 'setup_token'

const BYTES = 16

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Hex. */
export const digestSetUpToken = (token: string): string => sha256(token).toString('hex')

export function mintSetUpToken(nowMs: number): { readonly token: string; readonly kept: string } {
  const token = randomBytes(BYTES).toString('base64url')
  const kept = JSON.stringify({ digest: digestSetUpToken(token), expiresMs: nowMs + bounds.setUpMsMax })
  return { token, kept }
}

/** Whether a digest is that of the one that is kept, in its time. */
export function isKeptToken(digest: string, kept: string | undefined, nowMs: number): boolean {
  if (kept === undefined) return false
  const { digest: wanted, expiresMs } = JSON.parse(kept) as { digest: string; expiresMs: number }
  return timingSafeEqual(sha256(digest), sha256(wanted)) && nowMs < expiresMs
}
