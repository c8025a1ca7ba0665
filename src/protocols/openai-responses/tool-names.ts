// Converts tool names of other dialects to what this dialect allows. Changed names are noted, so that the answer can
// use the caller's names.

import type { TranslationNotes } from '../neutral/translation-notes.ts'

const ALLOWED = /^[a-zA-Z0-9_-]{1,64}$/
const NAME_CHARS_MAX = 64

export class ResponsesToolNames {
  readonly #notes: TranslationNotes
  readonly #written = new Map<string, string>()

  /** No name is changed to one of the valid names in `known`. */
  constructor(notes: TranslationNotes, known: readonly string[]) {
    this.#notes = notes
    for (const name of known) if (ALLOWED.test(name)) this.#written.set(name, name)
  }

  write(name: string): string {
    const known = this.#written.get(name)
    if (known !== undefined) return known
    const clean = name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, NAME_CHARS_MAX) || 'tool'
    const taken = new Set(this.#written.values())
    let written = clean
    for (let n = 2; taken.has(written); n++) written = `${clean.slice(0, NAME_CHARS_MAX - 5)}_${n}`
    this.#written.set(name, written)
    if (written !== name) this.#notes.renamed.set(written, name)
    return written
  }
}
