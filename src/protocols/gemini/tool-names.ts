// Tool names for Google, which must begin with a letter or `_`. A name that another dialect allows and Google does not
// is replaced, and the reader of the answer puts the caller's name back.

import type { Tool } from '../neutral/conversation.ts'
import { UniqueNames } from '../neutral/unique-names.ts'

const VALID_NAME = /^[A-Za-z_][\w.:-]{0,127}$/
const NAME_CHARS_MAX = 128

export class GeminiToolNames {
  readonly #written = new Map<string, string>()
  readonly #renamed: Map<string, string>
  readonly #uniqueNames = new UniqueNames(NAME_CHARS_MAX)

  constructor(tools: readonly Tool[], renamed: Map<string, string>) {
    this.#renamed = renamed
    for (const name of renamed.keys()) this.#uniqueNames.add(name)
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
    this.#uniqueNames.add(written)
    if (written !== name) this.#renamed.set(written, name)
    return written
  }

  /** A valid name, like `wanted`, that no tool has. */
  reserve(wanted: string): string {
    const clean = wanted
      .replace(/[^\w.:-]/g, '_')
      .replace(/^(?![A-Za-z_])/, '_')
      .slice(0, NAME_CHARS_MAX)
    return this.#uniqueNames.take(clean)
  }
}
