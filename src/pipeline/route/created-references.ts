// Collects the ids that an answer gives to things which the upstream stores.

import { bounds } from '../../base/bounds.ts'
import type { ReadCreatedIds } from '../../protocols/request/created-references.ts'

/** The ids that an upstream created while it answered one call. */
export class CreatedReferences {
  readonly #read: ReadCreatedIds
  #ids = new Set<string>()
  #channel: string | undefined

  constructor(read: ReadCreatedIds) {
    this.#read = read
  }

  /** A new attempt begins; the ids of the attempt before are dropped. */
  begin(channel: string): void {
    this.#channel = channel
    this.#ids = new Set()
  }

  collect(answer: unknown): void {
    if (this.#ids.size < bounds.referencesOfAnswerMax) for (const id of this.#read(answer)) this.#ids.add(id)
  }

  get created(): { readonly channel: string; readonly ids: readonly string[] } | undefined {
    return this.#channel === undefined || this.#ids.size === 0
      ? undefined
      : { channel: this.#channel, ids: [...this.#ids] }
  }
}
