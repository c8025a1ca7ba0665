// Sets fields in the text of a JSON file. Everything else stays as it is, with comments and line breaks: editors write
// their settings as JSON with comments.

import type { TextEdit } from './text-edit.ts'
import { insertAt } from './text-edit.ts'

/** A value in the text. Objects and lists have entries. */
interface JsonNode {
  readonly start: number
  readonly end: number
  readonly entries?: readonly JsonEntry[]
}

interface JsonEntry {
  readonly name: string | number
  readonly node: JsonNode
}

export type FieldPath = readonly (string | number)[]

const DEPTH_MAX = 100
const INDENT = '  '

/** The edits that set `value` at `path`. The text must be JSON, with or without comments. */
export function setInJson(text: string, path: FieldPath, value: unknown): readonly TextEdit[] {
  let node = new JsonReader(text).read()
  let depth = 0
  for (; depth < path.length; depth++) {
    // Of two fields with the same name, programs read the last one.
    const entry = node.entries?.findLast(({ name }) => name === path[depth])
    if (entry === undefined) break
    node = entry.node
  }
  if (depth === path.length) {
    return [{ start: node.start, end: node.end, text: write(value, marginAt(text, node.start)) }]
  }
  const [name, ...inner] = path.slice(depth)
  return insert(text, node, name!, nestedValue(inner, value))
}

/** `value` in the objects and lists that the path names. */
export const nestedValue = (path: FieldPath, value: unknown): unknown =>
  path.reduceRight((held, one) => (typeof one === 'number' ? [held] : { [one]: held }), value)

const write = (value: unknown, margin: string): string =>
  JSON.stringify(value, null, INDENT).replaceAll('\n', `\n${margin}`)

/** The white space at the start of the line. */
const marginAt = (text: string, at: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', at - 1) + 1))![0]

/** Adds an entry at the end of an object or a list. */
function insert(text: string, holder: JsonNode, name: string | number, value: unknown): readonly TextEdit[] {
  const prefix = typeof name === 'number' ? '' : `${JSON.stringify(name)}: `
  const last = holder.entries?.at(-1)?.node
  const close = holder.end - 1
  const isOneLine = last !== undefined && !text.slice(holder.start, close).includes('\n')
  if (isOneLine) return [insertAt(last.end, `, ${prefix}${JSON.stringify(value)}`)]
  const margin = last === undefined ? marginAt(text, holder.start) + INDENT : marginAt(text, last.start)
  const hasComma = last === undefined || new JsonReader(text).skipFrom(last.end) === ','
  const closeMargin = marginAt(text, last === undefined ? holder.start : close)
  return [
    ...(hasComma ? [] : [insertAt(last.end, ',')]),
    // After the comments that belong to the last entry.
    {
      start: text.slice(0, close).trimEnd().length,
      end: close,
      text: `\n${margin}${prefix}${write(value, margin)}\n${closeMargin}`,
    },
  ]
}

class JsonReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): JsonNode {
    const node = this.#value(0)
    this.#skip()
    if (this.#at < this.#text.length) throw new SyntaxError(`unexpected text at ${this.#at}`)
    return node
  }

  /** The next character that is neither white space nor part of a comment. */
  skipFrom(at: number): string | undefined {
    this.#at = at
    this.#skip()
    return this.#text[this.#at]
  }

  #skip(): void {
    this.#match(/(?:[\s\ufeff]|\/\/[^\n]*|\/\*[^]*?\*\/)*/y)
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #value(depth: number): JsonNode {
    this.#skip()
    const start = this.#at
    const open = this.#text[start]
    if (depth > DEPTH_MAX) throw new SyntaxError('nested too deeply')
    if (open === '{' || open === '[') {
      this.#at++
      const entries = this.#entries(open === '{' ? '}' : ']', depth)
      return { start, end: this.#at, entries }
    }
    if (this.#match(/"(?:[^"\\]|\\[^])*"|-?[\d.eE+-]+|true|false|null/y) === undefined) {
      throw new SyntaxError(`unexpected text at ${start}`)
    }
    return { start, end: this.#at }
  }

  #entries(close: string, depth: number): readonly JsonEntry[] {
    const entries: JsonEntry[] = []
    for (;;) {
      this.#skip()
      if (this.#match(/[}\]]/y) !== undefined) break
      const name = close === '}' ? this.#name() : entries.length
      entries.push({ name, node: this.#value(depth + 1) })
      this.#skip()
      this.#match(/,/y)
    }
    return entries
  }

  #name(): string {
    const name = this.#match(/"(?:[^"\\]|\\[^])*"/y)
    this.#skip()
    if (name === undefined || this.#match(/:/y) === undefined) throw new SyntaxError(`no name at ${this.#at}`)
    return JSON.parse(name) as string
  }
}
