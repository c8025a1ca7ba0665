// A short public fingerprint of a secret. It tells which secret sealed an envelope, and reveals nothing about the
// secret.

import { createHash, hkdfSync } from 'node:crypto'
import type { Secret } from './secret.ts'

const SEAL_KEY_BYTES = 32

export const FINGERPRINT_BYTES = 4

export const deriveSealKey = (secret: Secret): Buffer =>
  Buffer.from(hkdfSync('sha256', secret.reveal(), '', 'weir seal 1', SEAL_KEY_BYTES))

/** The fingerprint in hex. */
export const fingerprintOf = (secret: Secret): string =>
  createHash('sha256')
    .update('weir seal mark')
    .update(deriveSealKey(secret))
    .digest('hex')
    .slice(0, 2 * FINGERPRINT_BYTES)
