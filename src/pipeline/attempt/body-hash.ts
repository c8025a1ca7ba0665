// Names the bytes of a body in a record, so that what came and what went can be shown to be what somebody says.

import type { Hash } from 'node:crypto'
import { createHash, hash } from 'node:crypto'
import { bounds } from '../../base/bounds.ts'
import { hashTaken } from '../../protocols/request/large-json.ts'

const shortened = (hex: string): string => hex.slice(0, 32)

/** The first half of its SHA-256. */
export const bodyHash = (body: Uint8Array): string => shortened(hashTaken(body) ?? hash('sha256', body, 'hex'))

/** The same where nobody needs it at once: of a large body piece after piece, between the work of others. */
export class SlowHash {
  #hasher: Hash | undefined
  #left: Uint8Array | undefined
  #text: string | undefined

  constructor(body: Uint8Array) {
    if (body.byteLength <= bounds.hashedAtOnceBytesMax) {
      this.#text = bodyHash(body)
      return
    }
    this.#hasher = createHash('sha256')
    this.#left = body
    setImmediate(() => this.#goOn())
  }

  get isTaken(): boolean {
    return this.#text !== undefined
  }

  /** What is left of it is hashed now. */
  get text(): string {
    while (this.#left !== undefined) this.#step(this.#left)
    return this.#text!
  }

  async whole(): Promise<string> {
    while (!this.isTaken) await new Promise(setImmediate)
    return this.text
  }

  #goOn(): void {
    if (this.#left === undefined) return
    this.#step(this.#left)
    setImmediate(() => this.#goOn())
  }

  #step(left: Uint8Array): void {
    const piece = bounds.hashedAtOnceBytesMax
    this.#hasher!.update(left.subarray(0, piece))
    this.#left = left.byteLength > piece ? left.subarray(piece) : undefined
    if (this.#left === undefined) this.#text = shortened(this.#hasher!.digest('hex'))
  }
}
