// Finds a key in the store, also if its digest was made with an older pepper. Such a key gets a new digest with the
// newest pepper, in the background, so that older peppers go out of use. Only a call reveals the key that is needed for
// this.

import { bounds } from '../base/bounds.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'
import type { KeyRow, Reader } from '../store/engine/reader.ts'
import type { StoreWriter } from '../store/engine/store-engine.ts'
import type { RedigestedKey } from '../store/secrets/secret-operations.ts'
import type { KeyText } from './key-format.ts'
import { digestsOf } from './key-format.ts'

export interface KeyFinderParts {
  readonly reader: Pick<Reader, 'findKey' | 'findKeyOfAny'>
  readonly writer: Pick<StoreWriter, 'run'>
  readonly pepper: SecretRing
}

const BATCH_KEYS = 64

export class KeyFinder {
  readonly #parts: KeyFinderParts
  /** By old digest, so that each is written once, however many calls use the key meanwhile. */
  readonly #waiting = new Map<string, RedigestedKey>()
  #writing: Promise<void> | undefined
  #closed = false
  #clears = 0

  constructor(parts: KeyFinderParts) {
    this.#parts = parts
  }

  /** `digest`: the digest of the key with the newest pepper. */
  async find(digest: Buffer, key: KeyText): Promise<KeyRow | undefined> {
    const row = await this.#parts.reader.findKey(digest)
    return row !== undefined || this.#parts.pepper.all.length === 1 ? row : await this.#findOlder(key)
  }

  /** Call it when the peppers have changed: a waiting digest may be of a removed one. The next call adds it again. */
  clearPending(): void {
    this.#clears++
    this.#waiting.clear()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#writing
  }

  async #findOlder(key: KeyText): Promise<KeyRow | undefined> {
    const { reader, pepper } = this.#parts
    const clearsBefore = this.#clears
    const digests = digestsOf(key, pepper)
    const found = await reader.findKeyOfAny(digests)
    if (found === undefined || found.digest === digests[0] || this.#clears !== clearsBefore) return found?.row
    const { id } = found.row
    const [from, to] = [found.digest.toString('hex'), digests[0]!.toString('hex')]
    if (!this.#waiting.has(from) && this.#waiting.size < bounds.keysCachedMax) {
      this.#waiting.set(from, { id, from, to, pepper: pepper.newestFingerprint })
    }
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined))
    return found.row
  }

  /** Digests that could not be written wait for the next key with an old digest. */
  async #write(): Promise<void> {
    while (this.#waiting.size > 0 && !this.#closed) {
      const keys = [...this.#waiting.values()].slice(0, BATCH_KEYS)
      try {
        await this.#parts.writer.run('redigestKeys', { keys })
      } catch {
        return
      }
      for (const key of keys) if (this.#waiting.get(key.from) === key) this.#waiting.delete(key.from)
    }
  }
}
