// API keys: `wk-`, 30 random base62 characters, and 6 characters with a CRC-32 of the rest, so that typing errors and
// random guesses are refused without a lookup.

import { createHmac, randomBytes } from 'node:crypto'
import type { Brand } from '../base/brand.ts'
import type { Secret } from '../base/secrets/secret.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'

/** A text with the format and checksum of a key. The key may still be unknown. */
export type KeyText = Brand<string, 'KeyText'>

export const keyPrefix = 'wk-'
const RANDOM_CHARS = 30
const CHECK_CHARS = 6
const KEY_CHARS = keyPrefix.length + RANDOM_CHARS + CHECK_CHARS
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

function crc32(text: string): number {
  let sum = 0xffffffff
  for (let index = 0; index < text.length; index++) {
    sum = CRC_TABLE[(sum ^ text.charCodeAt(index)) & 0xff]! ^ (sum >>> 8)
  }
  return (sum ^ 0xffffffff) >>> 0
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let digit = 0; digit < CHECK_CHARS; digit++) {
    digits = BASE62[rest % 62]! + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

export function mintKey(random: (bytes: number) => Uint8Array = randomBytes): KeyText {
  let text = keyPrefix
  while (text.length < keyPrefix.length + RANDOM_CHARS) {
    for (const byte of random(64)) {
      // 248 is the largest multiple of 62 in a byte. Higher values would make some characters more likely.
      if (byte < 248 && text.length < keyPrefix.length + RANDOM_CHARS) text += BASE62[byte % 62]!
    }
  }
  return (text + checksum(text)) as KeyText
}

export function parseKey(text: string): KeyText | undefined {
  if (text.length !== KEY_CHARS || !text.startsWith(keyPrefix)) return undefined
  for (let index = keyPrefix.length; index < KEY_CHARS; index++) {
    if (!isBase62(text.charCodeAt(index))) return undefined
  }
  return checksum(text.slice(0, -CHECK_CHARS)) === text.slice(-CHECK_CHARS) ? (text as KeyText) : undefined
}

const isBase62 = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a)

/** The stored form of a key. Without the pepper, which is not in the database, nobody can verify or forge it. */
export function digestKey(key: KeyText, pepper: Secret): Buffer {
  return createHmac('sha256', pepper.reveal()).update(key).digest()
}

/** The digests of a key with each pepper, the newest first. */
export const digestsOf = (key: KeyText, peppers: SecretRing): readonly Buffer[] =>
  peppers.all.map(pepper => digestKey(key, pepper))

/** The last characters, which identify a key in a list and do not help to guess it. */
export const keySuffix = (key: KeyText): string => key.slice(-4)
