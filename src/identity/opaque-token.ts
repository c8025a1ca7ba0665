// Tokens without a meaning: 256 random bits, of which only a digest is kept. That many cannot be guessed, so a plain
// digest tells nothing of them.

import { createHash, randomBytes } from 'node:crypto'

const BYTES = 32
const SHAPE = /^[A-Za-z0-9_-]{43}$/

export const mintOpaque = (): string => randomBytes(BYTES).toString('base64url')

/** Whether it can be one of ours. */
export const isOpaque = (text: string): boolean => SHAPE.test(text)

/** In hex. */
export const digestOpaque = (token: string): string => createHash('sha256').update(token).digest('hex')
