// Who a key belongs to: a bounded read-through cache over the store, so that a million keys cost a call no more
// than ten, and no more memory.
//
// A change is seen at once: whoever changes a key calls forget() after the change is durable. A look-up that was
// already under way then may have read the old row, so its result is used once and not kept.

import { AddressRanges } from '../http/address/ranges.ts'
import type { KeyRow } from '../store/engine/reader.ts'
import type { KeyText } from './key-format.ts'

/** A key as calls are judged by it. */
export interface KnownKey extends KeyRow {
  /** Of its addresses, where it is not free to come from anywhere. */
  readonly ranges?: AddressRanges
}

export interface KeyDirectoryParts {
  /** Reads one key by its digest with the newest pepper; by the key itself where it may have another. */
  find(digest: Buffer, key: KeyText): KeyRow | undefined | Promise<KeyRow | undefined>
  nowMs(): number
  readonly knownMax: number
  readonly unknownMax: number
  /** How long a digest that nobody has may be answered from memory. */
  readonly unknownMs: number
}

export class KeyDirectory {
  readonly #parts: KeyDirectoryParts
  readonly #known = new Map<string, KnownKey>()
  readonly #unknown = new Map<string, number>()
  #changes = 0

  constructor(parts: KeyDirectoryParts) {
    this.#parts = parts
  }

  get cached(): number {
    return this.#known.size + this.#unknown.size
  }

  /** The key if memory can tell: a row, 'unknown', or undefined when the store must be asked. */
  recall(digest: Buffer): KnownKey | 'unknown' | undefined {
    const name = digest.toString('latin1')
    const row = this.#known.get(name)
    if (row !== undefined) return row
    const until = this.#unknown.get(name)
    return until !== undefined && until > this.#parts.nowMs() ? 'unknown' : undefined
  }

  async lookUp(digest: Buffer, key: KeyText): Promise<KnownKey | undefined> {
    const changesBefore = this.#changes
    const row = known(await this.#parts.find(digest, key))
    if (changesBefore !== this.#changes) return row
    const name = digest.toString('latin1')
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

  /** Call when a key was made, changed or revoked. All of it is forgotten: changes are rare, mistakes are dear. */
  forget(): void {
    this.#changes++
    this.#known.clear()
    this.#unknown.clear()
  }
}

/** What no call should have to read. */
const known = (row: KeyRow | undefined): KnownKey | undefined =>
  row === undefined || row.addresses === null ? row : { ...row, ranges: new AddressRanges(row.addresses) }

/** Drops the oldest. The next call of a dropped key reads it again: a few microseconds, not a mistake. */
function trim(map: Map<string, unknown>, max: number): void {
  while (map.size > max) map.delete(map.keys().next().value as string)
}
