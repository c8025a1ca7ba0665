// A secret prints as [secret], whoever prints it. It is read with reveal(), which is easy to search for.

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

  /** Takes every occurrence of the secret, also encoded and in part, out of a text that is to leave the process. */
  scrub(text: string): string {
    if (this.#value === '') return text
    this.#scrubber ??= new Scrubber(this.#value)
    return this.#scrubber.scrub(text)
  }
}
