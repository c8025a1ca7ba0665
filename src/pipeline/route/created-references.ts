// The ids that an answer gives to things which the upstream keeps.

import { bounds } from '../../base/bounds.ts'
import type { ReadMade } from '../../protocols/request/created-references.ts'

/** Ids that an upstream has given while it answered one call. */
export class NamesMade {
  readonly #read: ReadMade
  #ids = new Set<string>()
  #channel: string | undefined

  constructor(read: ReadMade) {
    this.#read = read
  }

  /** Another attempt: what the one before was told is lost with it. */
  begin(channel: string): void {
    this.#channel = channel
    this.#ids = new Set()
  }

  take(answer: unknown): void {
    if (this.#ids.size < bounds.referencesOfAnswerMax) for (const id of this.#read(answer)) this.#ids.add(id)
  }

  get made(): { readonly channel: string; readonly ids: readonly string[] } | undefined {
    return this.#channel === undefined || this.#ids.size === 0
      ? undefined
      : { channel: this.#channel, ids: [...this.#ids] }
  }
}
