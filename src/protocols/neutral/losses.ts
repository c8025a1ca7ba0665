// Collects the losses of a call: short codes for what a translation could not carry. Callers get the codes. A code has
// lower-case letters, digits, `_` and `.`.

import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'

const LOSSES_MAX = 32
const CODE_CHARS_MAX = 48

const noCodes: readonly string[] = []

export class Losses {
  /** Most calls lose nothing. */
  #codes: Set<string> | undefined

  add(code: string): void {
    const clean = code
      .toLowerCase()
      .replace(/[^a-z0-9_.]+/g, '_')
      .slice(0, CODE_CHARS_MAX)
    this.#codes ??= new Set()
    if (clean !== '' && this.#codes.size < LOSSES_MAX) this.#codes.add(clean)
  }

  addAll(codes: readonly string[]): void {
    for (const code of codes) this.add(code)
  }

  /** Throws a Refusal if there is a loss and the caller allows none. */
  throwIfStrict(strict: boolean | undefined): void {
    if (!strict || this.codes.length === 0) return
    const codes = this.codes.join(', ')
    throw new Refusal('translation_loses', codes, { hint: hintOf('call_losses', { losses: codes }) })
  }

  /** Each code once, in the order of the first `add`. */
  get codes(): readonly string[] {
    return this.#codes === undefined ? noCodes : [...this.#codes]
  }
}
