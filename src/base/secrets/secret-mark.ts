// A short public fingerprint of a secret. It tells which secret sealed an envelope, and reveals nothing about the
// secret.

import { createHash, hkdfSync } from 'node:crypto'
import type { Secret } from './secret.ts'

export const KEY_BYTES = 32

export const MARK_BYTES = 4

export const keyOf = (secret: Secret): Buffer =>
  Buffer.from(hkdfSync('sha256', secret.reveal(), '', 'weir seal 1', KEY_BYTES))

/** The fingerprint in hex. */
export const markOf = (secret: Secret): string =>
  createHash('sha256')
    .update('weir seal mark')
    .update(keyOf(secret))
    .digest('hex')
    .slice(0, 2 * MARK_BYTES)
