// The text of credentials that the gateway creates: a prefix, 30 random base62 characters, and 6 characters with a CRC-32
// of the rest, so that typing errors and random guesses are refused without a lookup.

import { randomBytes } from 'node:crypto'

const RANDOM_CHARS = 30
const CHECK_CHARS = 6
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

export function mintCredential(prefix: string, random: (bytes: number) => Uint8Array = randomBytes): string {
  let text = prefix
  while (text.length < prefix.length + RANDOM_CHARS) {
    for (const byte of random(64)) {
      // 248 is the largest multiple of 62 in a byte. Higher values would make some characters more likely.
      if (byte < 248 && text.length < prefix.length + RANDOM_CHARS) text += BASE62[byte % 62]!
    }
  }
  return text + checksum(text)
}

/** Whether a text has the prefix, the length, the characters and the checksum of a credential. */
export function isCredential(text: string, prefix: string): boolean {
  if (text.length !== prefix.length + RANDOM_CHARS + CHECK_CHARS || !text.startsWith(prefix)) return false
  for (let index = prefix.length; index < text.length; index++) {
    if (!isBase62(text.charCodeAt(index))) return false
  }
  return checksum(text.slice(0, -CHECK_CHARS)) === text.slice(-CHECK_CHARS)
}

const isBase62 = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a)

/** The last characters, which identify a credential in a list and do not help to guess it. */
export const credentialSuffix = (text: string): string => text.slice(-4)

/** Replaces a text that begins like a credential, for messages that repeat what somebody wrote. */
export const maskCredential = (text: string): string => text.replace(/\b(wk-|wst-|sk-)[\w-]{8,}/g, '$1…')
