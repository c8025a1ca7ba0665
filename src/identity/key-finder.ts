// Finds a key in the store, also one whose digest has an older pepper in it. Such a key is digested anew with the
// newest, beside the calls, so that older peppers fade out: nobody but its caller can tell us the key.

import { bounds } from '../base/bounds.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'
import type { KeyRow, Reader } from '../store/engine/reader.ts'
import type { Writer } from '../store/engine/writer.ts'
import type { RedigestedKey } from '../store/secrets/secret-operations.ts'
import type { KeyText } from './key-format.ts'
import { digestsOf } from './key-format.ts'

export interface KeyFinderParts {
  readonly reader: Pick<Reader, 'findKey' | 'findKeyOfAny'>
  readonly writer: Pick<Writer, 'run'>
  readonly pepper: SecretRing
}

const AT_ONCE = 64

export class KeyFinder {
  readonly #parts: KeyFinderParts
  /** By the digest that goes: one is written once, however many calls are made with it meanwhile. */
  readonly #waiting = new Map<string, RedigestedKey>()
  #writing: Promise<void> | undefined
  #closed = false

  constructor(parts: KeyFinderParts) {
    this.#parts = parts
  }

  /** `digest` is the key's with the newest pepper. */
  find(digest: Buffer, key: KeyText): KeyRow | undefined {
    const row = this.#parts.reader.findKey(digest)
    return row !== undefined || this.#parts.pepper.all.length === 1 ? row : this.#findOlder(key)
  }

  /** When peppers have changed: what waits may be of one that is let go next. Its callers come again. */
  forget(): void {
    this.#waiting.clear()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#writing
  }

  #findOlder(key: KeyText): KeyRow | undefined {
    const { reader, pepper } = this.#parts
    const digests = digestsOf(key, pepper)
    const found = reader.findKeyOfAny(digests)
    if (found === undefined || found.digest === digests[0]) return found?.row
    const { id } = found.row
    const [from, to] = [found.digest.toString('hex'), digests[0]!.toString('hex')]
    if (!this.#waiting.has(from) && this.#waiting.size < bounds.keysCachedMax) {
      this.#waiting.set(from, { id, from, to, pepper: pepper.newestMark })
    }
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined))
    return found.row
  }

  /** What cannot be written waits for the next that comes. */
  async #write(): Promise<void> {
    while (this.#waiting.size > 0 && !this.#closed) {
      const keys = [...this.#waiting.values()].slice(0, AT_ONCE)
      try {
        await this.#parts.writer.run('redigestKeys', { keys })
      } catch {
        return
      }
      for (const key of keys) if (this.#waiting.get(key.from) === key) this.#waiting.delete(key.from)
    }
  }
}
