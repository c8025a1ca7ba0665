// What a translation could not carry. Codes are short, of lower case, digits, `_` and `.`, and are told to the caller.

import { Refusal } from '../../base/errors.ts'

const LOSSES_MAX = 32
const CODE_CHARS_MAX = 48

export class Losses {
  readonly #codes = new Set<string>()

  add(code: string): void {
    const clean = code
      .toLowerCase()
      .replace(/[^a-z0-9_.]+/g, '_')
      .slice(0, CODE_CHARS_MAX)
    if (clean !== '' && this.#codes.size < LOSSES_MAX) this.#codes.add(clean)
  }

  addAll(codes: readonly string[]): void {
    for (const code of codes) this.add(code)
  }

  /** Throws where something was lost and the caller forbade that. */
  throwIf(strict: boolean | undefined): void {
    if (!strict || this.#codes.size === 0) return
    const codes = this.codes.join(', ')
    throw new Refusal('translation_loses', codes, { hint: `It would lose: ${codes}.` })
  }

  /** In the order in which they were noticed, each once. */
  get codes(): readonly string[] {
    return [...this.#codes]
  }
}
