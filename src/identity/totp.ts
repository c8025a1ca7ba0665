// Codes of authenticator apps: six digits from a secret and the time (RFC 6238, with SHA-1 and 30 seconds, which every
// app supports). Also the recovery codes for people who have lost their authenticator.

import { createHmac, randomBytes } from 'node:crypto'
import type { Seal, SealLocation } from '../base/secrets/seal.ts'
import { Secret } from '../base/secrets/secret.ts'

const STEP_MS = 30_000
const DIGITS = 6
/** Steps before and after the current one that are accepted, because clocks differ and typing takes time. */
const STEPS_OFF = 1
const SECRET_BYTES = 20
const RECOVERY_BYTES = 10

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648, without padding. */
export function encodeBase32(bytes: Uint8Array): string {
  let [text, value, bits] = ['', 0, 0]
  for (const byte of bytes) {
    value = (value << 8) | byte
    for (bits += 8; bits >= 5; bits -= 5) text += LETTERS[(value >> (bits - 5)) & 31]!
    value &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + LETTERS[(value << (5 - bits)) & 31]!
}

export function decodeBase32(text: string): Buffer {
  const bytes: number[] = []
  let [value, bits] = [0, 0]
  for (const letter of text) {
    value = (value << 5) | LETTERS.indexOf(letter)
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((value >> bits) & 255)
    value &= (1 << bits) - 1
  }
  return Buffer.from(bytes)
}

export const mintTotpSecret = (random: (bytes: number) => Uint8Array = randomBytes): Secret =>
  new Secret(encodeBase32(random(SECRET_BYTES)))

export const totpStepAt = (dateMs: number): number => Math.floor(dateMs / STEP_MS)

export function totpCodeOf(secret: Secret, step: number, digits = DIGITS): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const hash = createHmac('sha1', decodeBase32(secret.reveal())).update(counter).digest()
  const number = hash.readUInt32BE(hash.at(-1)! & 15) & 0x7fff_ffff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/** The step to which a code belongs; undefined if the code is not accepted now. */
export function totpStepOfCode(secret: Secret, code: string, dateMs: number): number | undefined {
  const now = totpStepAt(dateMs)
  for (let step = now + STEPS_OFF; step >= now - STEPS_OFF; step--) if (totpCodeOf(secret, step) === code) return step
  return undefined
}

export const isTotpCode = (text: string): boolean => /^\d{6}$/.test(text)

/** Shown once to the person: the secret to type, and a URL for a QR code. */
export function showTotp(secret: Secret, { site, email }: { readonly site: string; readonly email: string }) {
  const [label, secretText] = [`${encodeURIComponent(site)}:${encodeURIComponent(email)}`, secret.reveal()]
  return { secret: secretText, url: `otpauth://totp/${label}?secret=${secretText}&issuer=${encodeURIComponent(site)}` }
}

/** `abcd-efgh-ijkl-mnop`: 80 random bits. */
export const mintRecoveryCode = (random: (bytes: number) => Uint8Array = randomBytes): string =>
  encodeBase32(random(RECOVERY_BYTES)).toLowerCase().match(/.{4}/g)!.join('-')

/** Undefined if the text cannot be a recovery code. */
export function parseRecoveryCode(text: string): string | undefined {
  const letters = text.toLowerCase().replace(/[\s-]/g, '')
  return /^[a-z2-7]{16}$/.test(letters) ? letters.match(/.{4}/g)!.join('-') : undefined
}

const locationOf = (personId: number): SealLocation => ({ table: 'totp', row: personId, column: 'sealed' })

/** The sealed secret in base64. */
export const sealTotp = (seal: Pick<Seal, 'seal'>, personId: number, secret: Secret): string =>
  seal.seal(locationOf(personId), Buffer.from(secret.reveal())).toString('base64')

export const openTotp = (seal: Pick<Seal, 'open'>, personId: number, sealed: Uint8Array): Secret =>
  new Secret(seal.open(locationOf(personId), sealed).toString())
