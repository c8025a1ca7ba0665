// Closes what is kept of callers' words, so that a copy of the disk without the key tells nothing. AES-256-GCM.
//
// An envelope is: version (1 byte), which key (4), nonce (12), the closed bytes, tag (16). It opens only at the place
// it was made for: a row that is copied over another does not open there.

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import type { Secret } from './secret.ts'

const VERSION = 1
const KEY_BYTES = 32
const MARK_BYTES = 4
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

export class Seal {
  readonly #key: Buffer
  /** Tells a wrong key from a damaged envelope. */
  readonly #mark: Buffer

  constructor(secret: Secret) {
    this.#key = Buffer.from(hkdfSync('sha256', secret.reveal(), '', 'weir seal 1', KEY_BYTES))
    this.#mark = createHash('sha256').update('weir seal mark').update(this.#key).digest().subarray(0, MARK_BYTES)
  }

  close(place: SealedPlace, bytes: Uint8Array): Buffer {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce)
    cipher.setAAD(nameOf(place))
    const closed = [cipher.update(bytes), cipher.final()]
    return Buffer.concat([Buffer.of(VERSION), this.#mark, nonce, ...closed, cipher.getAuthTag()])
  }

  open(place: SealedPlace, envelope: Uint8Array): Buffer {
    const all = Buffer.from(envelope.buffer, envelope.byteOffset, envelope.byteLength)
    const isEnvelope = all.length >= HEAD_BYTES + TAG_BYTES && all[0] === VERSION
    if (!isEnvelope) throw new SealError('It is no envelope of this Weir.')
    if (!all.subarray(1, 1 + MARK_BYTES).equals(this.#mark)) {
      throw new SealError('It was sealed with another encryption key than the one in use.')
    }
    const decipher = createDecipheriv('aes-256-gcm', this.#key, all.subarray(1 + MARK_BYTES, HEAD_BYTES))
    decipher.setAAD(nameOf(place))
    decipher.setAuthTag(all.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(all.subarray(HEAD_BYTES, -TAG_BYTES)), decipher.final()])
    } catch {
      throw new SealError('It is damaged, or lies where it was not put.')
    }
  }
}

const nameOf = ({ table, row, column }: SealedPlace): Buffer => Buffer.from(`${table}/${row}/${column}`)
