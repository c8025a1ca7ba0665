// Names of tools. Google's begin with a letter or `_`; what another dialect allows and Google does not is renamed, and
// the answer's reader names it as the caller did.

import type { Tool } from '../neutral/conversation.ts'

const NAME = /^[A-Za-z_][\w.:-]{0,127}$/
const NAME_CHARS_MAX = 128

export class ToolNames {
  readonly #written = new Map<string, string>()
  readonly #renamed: Map<string, string>
  readonly #taken: Set<string>
  /** How often a clean name was wanted. */
  readonly #wanted = new Map<string, number>()

  constructor(tools: readonly Tool[], renamed: Map<string, string>) {
    this.#renamed = renamed
    this.#taken = new Set(renamed.keys())
    const names = tools.flatMap(tool => (tool.kind === 'function' || tool.kind === 'custom' ? [tool.name] : []))
    // Those that stay have their names first.
    for (const name of names) if (NAME.test(name)) this.write(name)
    for (const name of names) this.write(name)
  }

  write(name: string): string {
    const known = this.#written.get(name)
    if (known !== undefined) return known
    const written = NAME.test(name) ? name : this.free(name)
    this.#written.set(name, written)
    this.#taken.add(written)
    if (written !== name) this.#renamed.set(written, name)
    return written
  }

  /** One that no tool has. */
  free(wanted: string): string {
    const clean = wanted
      .replace(/[^\w.:-]/g, '_')
      .replace(/^(?![A-Za-z_])/, '_')
      .slice(0, NAME_CHARS_MAX)
    let number = this.#wanted.get(clean) ?? 1
    let name = clean
    while (this.#taken.has(name)) name = `${clean.slice(0, NAME_CHARS_MAX - 8)}_${++number}`
    this.#wanted.set(clean, number)
    this.#taken.add(name)
    return name
  }
}
