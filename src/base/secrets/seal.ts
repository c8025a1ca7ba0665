// Encrypts stored content of callers with AES-256-GCM, so that a copy of the disk is useless without the key.
//
// An envelope is: version (1 byte), fingerprint of the key (4), nonce (12), ciphertext, tag (16). It opens only in the
// table, row and column for which it was sealed: an envelope that is copied to another row does not open there.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Secret } from './secret.ts'
import { deriveSealKey, FINGERPRINT_BYTES, fingerprintOf } from './secret-fingerprint.ts'
import type { SecretRing } from './secret-ring.ts'

const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + FINGERPRINT_BYTES + NONCE_BYTES

/** The table, row and column of an envelope. */
export interface SealLocation {
  readonly table: string
  /** May contain any character: tables and columns have no slash, so that no two locations have the same name. */
  readonly row: number | string
  readonly column: string
}

/** An envelope could not be opened. The message says why. */
export class SealError extends Error {}

/** The fingerprint of the key that sealed an envelope. */
export const fingerprintIn = (envelope: Uint8Array): string =>
  Buffer.from(envelope.subarray(1, 1 + FINGERPRINT_BYTES)).toString('hex')

/** The first bytes of an envelope. They are unique, because they contain the nonce. */
export const envelopeHead = (envelope: Uint8Array): Buffer => Buffer.from(envelope.subarray(0, HEAD_BYTES))

interface Key {
  readonly key: Buffer
  readonly mark: Buffer
}

/** Seals with the newest key of a ring, and opens envelopes of every key of the ring. */
export class Seal {
  readonly #ring: SecretRing
  #secrets: readonly Secret[] = []
  #keys: readonly Key[] = []

  constructor(ring: SecretRing) {
    this.#ring = ring
  }

  seal(place: SealLocation, bytes: Uint8Array): Buffer {
    const { key, mark } = this.#current()[0]!
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    cipher.setAAD(nameOf(place))
    const ciphertext = [cipher.update(bytes), cipher.final()]
    return Buffer.concat([Buffer.of(VERSION), mark, nonce, ...ciphertext, cipher.getAuthTag()])
  }

  open(place: SealLocation, envelope: Uint8Array): Buffer {
    const all = Buffer.from(envelope.buffer, envelope.byteOffset, envelope.byteLength)
    const isEnvelope = all.length >= HEAD_BYTES + TAG_BYTES && all[0] === VERSION
    if (!isEnvelope) throw new SealError('The stored value is not an envelope of this version of Weir.')
    const sealedWith = all.subarray(1, 1 + FINGERPRINT_BYTES)
    const key = this.#current().find(({ mark }) => sealedWith.equals(mark))?.key
    if (key === undefined)
      throw new SealError('The stored value was sealed with an encryption key that is not configured.')
    const decipher = createDecipheriv('aes-256-gcm', key, all.subarray(1 + FINGERPRINT_BYTES, HEAD_BYTES))
    decipher.setAAD(nameOf(place))
    decipher.setAuthTag(all.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(all.subarray(HEAD_BYTES, -TAG_BYTES)), decipher.final()])
    } catch {
      throw new SealError('The stored value is damaged, or was copied from another row.')
    }
  }

  #current(): readonly Key[] {
    if (this.#secrets !== this.#ring.all) {
      this.#secrets = this.#ring.all
      this.#keys = this.#secrets.map(secret => ({
        key: deriveSealKey(secret),
        mark: Buffer.from(fingerprintOf(secret), 'hex'),
      }))
    }
    return this.#keys
  }
}

const nameOf = ({ table, row, column }: SealLocation): Buffer => Buffer.from(`${table}/${row}/${column}`)
