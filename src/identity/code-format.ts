// Redemption codes: `wr-` and four groups of four characters, with 80 random bits. Letters that look like digits are
// read as these digits, because people copy codes by hand.

import { createHmac, randomBytes } from 'node:crypto'
import type { Brand } from '../base/brand.ts'
import type { Secret } from '../base/secrets/secret.ts'

export type CodeText = Brand<string, 'CodeText'>

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ' // no I, L, O, U
const CHARS = 16

export function mintCode(random: (bytes: number) => Uint8Array = randomBytes): CodeText {
  // 32 divides 256, so the low five bits of a byte are as random as the byte.
  return formatCode([...random(CHARS)].map(byte => DIGITS[byte & 31]!).join(''))
}

const formatCode = (chars: string): CodeText => `wr-${chars.match(/.{4}/g)!.join('-')}` as CodeText

/** Undefined if the text cannot be a code. */
export function parseCode(text: string): CodeText | undefined {
  const match = /^WR-?([0-9A-Z-]+)$/.exec(text.trim().toUpperCase())
  const chars = (match?.[1] ?? '').replaceAll('-', '').replaceAll('O', '0').replace(/[IL]/g, '1')
  if (chars.length !== CHARS || [...chars].some(char => !DIGITS.includes(char))) return undefined
  return formatCode(chars)
}

/** The stored form of a code. As with a key, a copy of the database does not reveal the code. */
export function digestCode(code: CodeText, pepper: Secret): Buffer {
  return createHmac('sha256', pepper.reveal()).update(code).digest()
}
