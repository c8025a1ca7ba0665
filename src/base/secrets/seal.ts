// Closes what is kept of callers' words, so that a copy of the disk without the key tells nothing. AES-256-GCM.
//
// An envelope is: version (1 byte), which key (4), nonce (12), the closed bytes, tag (16). It opens only at the place
// it was made for: a row that is copied over another does not open there.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Secret } from './secret.ts'
import { keyOf, MARK_BYTES, markOf } from './secret-mark.ts'
import type { SecretRing } from './secret-ring.ts'

const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + MARK_BYTES + NONCE_BYTES

/** Where an envelope lies. */
export interface SealedPlace {
  readonly table: string
  /** May hold any character: a table and a column have no slash, so no two places have one name. */
  readonly row: number | string
  readonly column: string
}

/** An envelope that does not open, and why. */
export class SealError extends Error {}

/** The mark of the key that an envelope was sealed with. */
export const markIn = (envelope: Uint8Array): string =>
  Buffer.from(envelope.subarray(1, 1 + MARK_BYTES)).toString('hex')

/** How an envelope begins: no other begins so, for a nonce is in it. */
export const headOf = (envelope: Uint8Array): Buffer => Buffer.from(envelope.subarray(0, HEAD_BYTES))

interface Key {
  readonly key: Buffer
  readonly mark: Buffer
}

/** Seals with the newest key of its ring, opens what any of them has sealed. */
export class Seal {
  readonly #ring: SecretRing
  #secrets: readonly Secret[] = []
  #keys: readonly Key[] = []

  constructor(ring: SecretRing) {
    this.#ring = ring
  }

  close(place: SealedPlace, bytes: Uint8Array): Buffer {
    const { key, mark } = this.#current()[0]!
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    cipher.setAAD(nameOf(place))
    const closed = [cipher.update(bytes), cipher.final()]
    return Buffer.concat([Buffer.of(VERSION), mark, nonce, ...closed, cipher.getAuthTag()])
  }

  open(place: SealedPlace, envelope: Uint8Array): Buffer {
    const all = Buffer.from(envelope.buffer, envelope.byteOffset, envelope.byteLength)
    const isEnvelope = all.length >= HEAD_BYTES + TAG_BYTES && all[0] === VERSION
    if (!isEnvelope) throw new SealError('It is no envelope of this Weir.')
    const sealedWith = all.subarray(1, 1 + MARK_BYTES)
    const key = this.#current().find(({ mark }) => sealedWith.equals(mark))?.key
    if (key === undefined) throw new SealError('It was sealed with another encryption key than those in use.')
    const decipher = createDecipheriv('aes-256-gcm', key, all.subarray(1 + MARK_BYTES, HEAD_BYTES))
    decipher.setAAD(nameOf(place))
    decipher.setAuthTag(all.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(all.subarray(HEAD_BYTES, -TAG_BYTES)), decipher.final()])
    } catch {
      throw new SealError('It is damaged, or lies where it was not put.')
    }
  }

  #current(): readonly Key[] {
    if (this.#secrets !== this.#ring.all) {
      this.#secrets = this.#ring.all
      this.#keys = this.#secrets.map(secret => ({ key: keyOf(secret), mark: Buffer.from(markOf(secret), 'hex') }))
    }
    return this.#keys
  }
}

const nameOf = ({ table, row, column }: SealedPlace): Buffer => Buffer.from(`${table}/${row}/${column}`)
