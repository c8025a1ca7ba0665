// Sets fields in the text of a TOML file, line by line. Values of several lines may mislead it: the caller checks the
// result.

import type { FieldPath } from './edit-json.ts'
import type { TextEdit } from './text-edit.ts'
import { insertLines } from './text-edit.ts'

/** A text, or a value without white space. A comment may follow. */
const VALUE = /^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'#[{]\S*)[ \t]*\r?(?:#.*)?$/

export function setInToml(text: string, path: FieldPath, value: unknown): readonly TextEdit[] {
  const lines = text.split('\n')
  const startOf = (line: number): number => lines.slice(0, line).reduce((sum, { length }) => sum + length + 1, 0)
  const table = path.slice(0, -1).join('.')
  const field = String(path.at(-1))
  const added = `${field} = ${JSON.stringify(value)}`
  const header = table === '' ? -1 : lines.findIndex(one => one.replaceAll(/[\s"]|#.*/g, '') === `[${table}]`)
  if (table !== '' && header < 0) {
    return [insertLines(text, text.length, [...(text === '' ? [] : ['']), `[${table}]`, added])]
  }
  const next = lines.findIndex((one, at) => at > header && /^\s*\[/.test(one))
  const end = next < 0 ? lines.length : next
  const isField = new RegExp(String.raw`^\s*(?:"${RegExp.escape(field)}"|${RegExp.escape(field)})\s*=\s*`)
  const at = lines.findIndex((one, index) => index > header && index < end && isField.test(one))
  if (at >= 0) {
    const head = isField.exec(lines[at]!)![0].length
    const old = VALUE.exec(lines[at]!.slice(head))?.[1]
    if (old === undefined) throw new Error('not a value in one line')
    const start = startOf(at) + head
    return [{ start, end: start + old.length, text: JSON.stringify(value) }]
  }
  const isIn = (index: number): boolean => index > header && index < end && lines[index]!.trim() !== ''
  const lastField = lines.findLastIndex((one, index) => isIn(index) && !one.trimStart().startsWith('#'))
  // A comment right above the next table is about that table.
  const lastComment = lines.findLastIndex((_, index) => isIn(index) && lines[index + 1]?.trim() === '')
  const last = lastField >= 0 ? lastField : Math.max(lastComment, header)
  const gap = last < 0 && text.trim() !== '' ? [''] : []
  return [insertLines(text, Math.min(startOf(last + 1), text.length), [added, ...gap])]
}
