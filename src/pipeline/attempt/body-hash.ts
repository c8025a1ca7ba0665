// Hashes bodies for the record, so that a party can prove later what was received and what was sent.

import type { Hash } from 'node:crypto'
import { createHash, hash } from 'node:crypto'
import { bounds } from '../../base/bounds.ts'
import { getBodyHash } from '../../protocols/request/large-json.ts'

const firstHalf = (hex: string): string => hex.slice(0, 32)

/** The first half of the body's SHA-256, in hex. */
export const hashBody = (body: Uint8Array): string => firstHalf(getBodyHash(body) ?? hash('sha256', body, 'hex'))

/** The same hash, taken later: a large body is hashed in pieces, between other work. */
export class DeferredHash {
  #hasher: Hash | undefined
  #left: Uint8Array | undefined
  #text: string | undefined

  constructor(body: Uint8Array) {
    if (body.byteLength <= bounds.hashSliceBytesMax) {
      this.#text = hashBody(body)
      return
    }
    this.#hasher = createHash('sha256')
    this.#left = body
    setImmediate(() => this.#hashNext())
  }

  get isDone(): boolean {
    return this.#text !== undefined
  }

  /** Hashes the rest at once. */
  get text(): string {
    while (this.#left !== undefined) this.#step(this.#left)
    return this.#text!
  }

  async complete(): Promise<string> {
    while (!this.isDone) await new Promise(setImmediate)
    return this.text
  }

  #hashNext(): void {
    if (this.#left === undefined) return
    this.#step(this.#left)
    setImmediate(() => this.#hashNext())
  }

  #step(left: Uint8Array): void {
    const piece = bounds.hashSliceBytesMax
    this.#hasher!.update(left.subarray(0, piece))
    this.#left = left.byteLength > piece ? left.subarray(piece) : undefined
    if (this.#left === undefined) this.#text = firstHalf(this.#hasher!.digest('hex'))
  }
}
