// A bounded read-through cache of keys, so that a million keys cost a call no more time and memory than ten.
//
// Changes apply immediately: code that changes a key calls forget() after the change is durable. A lookup that was
// already running may have read the old row, so its result is used once and not cached.

import { AddressRanges } from '../http/address/ranges.ts'
import type { KeyRow } from '../store/engine/reader.ts'
import type { KeyText } from './key-format.ts'

/** A key with everything that is needed to check a call. */
export interface KnownKey extends KeyRow {
  /** The addresses from which the key may be used; undefined if from anywhere. */
  readonly ranges?: AddressRanges
}

export interface KeyDirectoryParts {
  /** Reads a key by its digest with the newest pepper. Needs the key itself to try older peppers. */
  find(digest: Buffer, key: KeyText): KeyRow | undefined | Promise<KeyRow | undefined>
  nowMs(): number
  readonly knownMax: number
  readonly unknownMax: number
  /** How long an unknown digest is cached. */
  readonly unknownMs: number
}

export class KeyDirectory {
  readonly #parts: KeyDirectoryParts
  readonly #known = new Map<string, KnownKey>()
  readonly #unknown = new Map<string, number>()
  readonly #lookUps = new Map<string, Promise<KnownKey | undefined>>()
  #changes = 0

  constructor(parts: KeyDirectoryParts) {
    this.#parts = parts
  }

  get cached(): number {
    return this.#known.size + this.#unknown.size
  }

  /** The cached result: a key, 'unknown', or undefined if the store must be read. */
  getCached(digest: Buffer): KnownKey | 'unknown' | undefined {
    const name = digest.toString('latin1')
    const row = this.#known.get(name)
    if (row !== undefined) return row
    const until = this.#unknown.get(name)
    return until !== undefined && until > this.#parts.nowMs() ? 'unknown' : undefined
  }

  /** All callers of a key share one look-up at a time. */
  lookUp(digest: Buffer, key: KeyText): Promise<KnownKey | undefined> {
    const name = digest.toString('latin1')
    let running = this.#lookUps.get(name)
    if (running === undefined) {
      const begun = this.#read(name, digest, key).finally(() => {
        if (this.#lookUps.get(name) === begun) this.#lookUps.delete(name)
      })
      running = begun
      this.#lookUps.set(name, begun)
    }
    return running
  }

  async #read(name: string, digest: Buffer, key: KeyText): Promise<KnownKey | undefined> {
    const changesBefore = this.#changes
    const found = await this.#parts.find(digest, key)
    const row = found && withRanges(found)
    if (changesBefore !== this.#changes) return row
    if (row === undefined) {
      this.#unknown.delete(name)
      this.#unknown.set(name, this.#parts.nowMs() + this.#parts.unknownMs)
      trim(this.#unknown, this.#parts.unknownMax)
    } else {
      this.#known.set(name, row)
      trim(this.#known, this.#parts.knownMax)
    }
    return row
  }

  /**
   * Call it when a key was created, changed or revoked. Clears everything, because changes are rare and errors costly.
   */
  clear(): void {
    this.#changes++
    this.#known.clear()
    // A look-up that is running may have read the old row, so later callers do not share it.
    this.#lookUps.clear()
    this.#unknown.clear()
  }
}

/** Parses the address ranges once, so that calls do not have to. */
export const withRanges = (row: KeyRow): KnownKey =>
  row.addresses === null ? row : { ...row, ranges: new AddressRanges(row.addresses) }

/** Drops the oldest entries. The next call of a dropped key reads it again, which takes a few microseconds. */
function trim(map: Map<string, unknown>, max: number): void {
  while (map.size > max) map.delete(map.keys().next().value as string)
}
