// Opaque tokens: 256 random bits, of which only a digest is stored. They cannot be guessed, so a plain digest without a
// pepper is safe.

import { createHash, randomBytes } from 'node:crypto'

const BYTES = 32
const SHAPE = /^[A-Za-z0-9_-]{43}$/

export const mintOpaqueToken = (): string => randomBytes(BYTES).toString('base64url')

/** Whether a text has the format of an opaque token. */
export const isOpaqueToken = (text: string): boolean => SHAPE.test(text)

/** The digest in hex. */
export const digestOpaqueToken = (token: string): string => createHash('sha256').update(token).digest('hex')
