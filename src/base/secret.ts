// A secret prints as [secret], whoever prints it. It is read with reveal(), which is easy to search for.

export class Secret {
  readonly #value: string

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

  /** Takes every occurrence of the secret out of a text that is about to leave the process. */
  scrub(text: string): string {
    return this.#value === '' ? text : text.replaceAll(this.#value, '[secret]')
  }
}
