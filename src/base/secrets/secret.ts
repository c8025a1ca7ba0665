// A secret text. It always prints as [secret]; only reveal() returns it, which is easy to search for in the code.

import { Scrubber } from './scrubber.ts'

export class Secret {
  readonly #value: string
  #scrubber: Scrubber | undefined

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  isSameAs(other: Secret): boolean {
    return this.#value === other.#value
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]'
  }

  /** Removes the secret, also encoded or in part, from a text that is about to leave the process. */
  scrub(text: string): string {
    if (this.#value === '') return text
    this.#scrubber ??= new Scrubber(this.#value)
    return this.#scrubber.scrub(text)
  }
}
