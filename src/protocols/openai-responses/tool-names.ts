// Converts tool names of other dialects to what this dialect allows. Changed names are noted, so that the answer can
// use the caller's names.

import type { TranslationNotes } from '../neutral/translation-notes.ts'
import { UniqueNames } from '../neutral/unique-names.ts'

const ALLOWED = /^[a-zA-Z0-9_-]{1,64}$/
const NAME_CHARS_MAX = 64

export class ResponsesToolNames {
  readonly #notes: TranslationNotes
  readonly #written = new Map<string, string>()
  readonly #uniqueNames = new UniqueNames(NAME_CHARS_MAX)

  /** No name is changed to one of the valid names in `known`. */
  constructor(notes: TranslationNotes, known: readonly string[]) {
    this.#notes = notes
    for (const name of new Set(known)) if (ALLOWED.test(name)) this.#written.set(name, this.#uniqueNames.take(name))
  }

  write(name: string): string {
    const known = this.#written.get(name)
    if (known !== undefined) return known
    const clean = name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, NAME_CHARS_MAX) || 'tool'
    const written = this.#uniqueNames.take(clean)
    this.#written.set(name, written)
    if (written !== name) this.#notes.renamed.set(written, name)
    return written
  }
}
