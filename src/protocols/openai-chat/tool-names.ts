// Converts tool names of other dialects to what chat allows: they may be too long or have other characters.

import { createHash } from 'node:crypto'
import type { Tool } from '../neutral/conversation.ts'
import type { TranslationNotes } from '../neutral/translation-notes.ts'

const NAME_CHARS_MAX = 64

const isAllowed = (name: string): boolean => /^[a-zA-Z0-9_-]{1,64}$/.test(name)

/** Converts the tool names of one request. Valid names stay unchanged. */
export class ChatToolNames {
  readonly #written = new Map<string, string>()
  readonly #taken: Set<string>
  readonly #notes: TranslationNotes

  constructor(tools: readonly Tool[], notes: TranslationNotes) {
    this.#notes = notes
    const names = tools.flatMap(tool => ('name' in tool ? [tool.name] : []))
    this.#taken = new Set(names.filter(isAllowed))
  }

  /** Also for tools that occur only in earlier messages. */
  write(name: string): string {
    if (isAllowed(name)) return name
    let written = this.#written.get(name)
    if (written === undefined) {
      written = this.#unusedName(name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, NAME_CHARS_MAX))
      this.#written.set(name, written)
      this.#taken.add(written)
      this.#notes.renamed.set(written, name)
    }
    return written
  }

  #unusedName(name: string): string {
    if (name !== '' && !this.#taken.has(name)) return name
    const hash = createHash('sha256').update(`${this.#taken.size} ${name}`).digest('hex').slice(0, 12)
    return `${name.slice(0, NAME_CHARS_MAX - hash.length - 1)}_${hash}`
  }
}
