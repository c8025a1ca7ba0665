// Reads and sets variables in the text of a file such as .env, as the library dotenv reads them: a value in quotes may
// have several lines.

import type { FieldPath } from './edit-json.ts'
import type { TextEdit } from './text-edit.ts'
import { insertLines } from './text-edit.ts'

interface FoundVariable {
  readonly name: string
  /** With its quotes. */
  readonly written: string
  readonly start: number
}

const VARIABLE =
  /^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*((?:"(?:\\[^]|[^"\\])*"|'[^']*'|`[^`]*`)(?=[ \t\r]*(?:#.*)?$)|.*?(?=[ \t\r]*$|[ \t]+#))/gm

function findVariables(text: string): readonly FoundVariable[] {
  return [...text.matchAll(VARIABLE)].map(({ 0: all, 1: name, 2: written, index }) => ({
    name: name!,
    written: written!,
    start: index + all.length - written!.length,
  }))
}

const QUOTED = /^(["'`])([^]*)\1$/

export function parseVariables(text: string): Record<string, unknown> {
  return Object.fromEntries(
    findVariables(text).map(({ name, written }) => [name, QUOTED.exec(written)?.[2] ?? written]),
  )
}

export function setVariable(text: string, path: FieldPath, value: unknown): readonly TextEdit[] {
  const found = findVariables(text)
  // Programs do not agree where such a value ends.
  if (found.some(({ written }) => /^["'`]/.test(written) && !QUOTED.test(written))) throw new Error('a quote is open')
  // Of two lines with one name, some programs read the first and others the last.
  const same = found.filter(({ name }) => name === path[0])
  if (same.length === 0) return [insertLines(text, text.length, [`${path[0]}=${String(value)}`])]
  return same.map(({ start, written }) => ({ start, end: start + written.length, text: String(value) }))
}
