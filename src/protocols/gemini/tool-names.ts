// Tool names for Google, which must begin with a letter or `_`. A name that another dialect allows and Google does not
// is replaced, and the reader of the answer puts the caller's name back.

import type { Tool } from '../neutral/conversation.ts'

const VALID_NAME = /^[A-Za-z_][\w.:-]{0,127}$/
const NAME_CHARS_MAX = 128

export class GeminiToolNames {
  readonly #written = new Map<string, string>()
  readonly #renamed: Map<string, string>
  readonly #taken: Set<string>
  /** How many tools have asked for a cleaned name. */
  readonly #uses = new Map<string, number>()

  constructor(tools: readonly Tool[], renamed: Map<string, string>) {
    this.#renamed = renamed
    this.#taken = new Set(renamed.keys())
    const names = tools.flatMap(tool => (tool.kind === 'function' || tool.kind === 'custom' ? [tool.name] : []))
    // Valid names come first, so that no replaced name takes one of them.
    for (const name of names) if (VALID_NAME.test(name)) this.write(name)
    for (const name of names) this.write(name)
  }

  write(name: string): string {
    const existing = this.#written.get(name)
    if (existing !== undefined) return existing
    const written = VALID_NAME.test(name) ? name : this.reserve(name)
    this.#written.set(name, written)
    this.#taken.add(written)
    if (written !== name) this.#renamed.set(written, name)
    return written
  }

  /** A valid name, like `wanted`, that no tool has. */
  reserve(wanted: string): string {
    const clean = wanted
      .replace(/[^\w.:-]/g, '_')
      .replace(/^(?![A-Za-z_])/, '_')
      .slice(0, NAME_CHARS_MAX)
    let number = this.#uses.get(clean) ?? 1
    let name = clean
    while (this.#taken.has(name)) name = `${clean.slice(0, NAME_CHARS_MAX - 8)}_${++number}`
    this.#uses.set(clean, number)
    this.#taken.add(name)
    return name
  }
}
