// Works out what a configuration file of another program must look like: the fields of the set-up are set, and everything
// else is kept to the byte.

import { isDeepStrictEqual } from 'node:util'
import { parse as parseYaml } from 'yaml'
import { Problem } from '../problem.ts'
import type { FieldPath } from './edit-json.ts'
import { setInJson } from './edit-json.ts'
import { setInToml } from './edit-toml.ts'
import { parseVariables, setVariable } from './edit-variables.ts'
import { setInYaml } from './edit-yaml.ts'
import type { FileFields, FileFormat, FileValue, ProgramFile } from './program.ts'
import type { TextEdit } from './text-edit.ts'
import { applyEdits } from './text-edit.ts'

export interface FieldChange {
  readonly path: FieldPath
  /** Undefined: the file does not have the field. */
  readonly before: unknown
  readonly after: FileValue
}

export interface EditedFile {
  readonly text: string
  readonly changes: readonly FieldChange[]
}

type Fields = Record<string, unknown>

interface Format {
  /** The text of a file without fields. */
  readonly empty: string
  parse(text: string): unknown
  /** Throws if it does not understand how the text is written. */
  set(text: string, path: FieldPath, value: FileValue): readonly TextEdit[]
}

const BYTE_ORDER_MARK = '\ufeff'

/** The fields of a file. */
export const readFields = (format: FileFormat, text: string | undefined, name: string): Fields =>
  text === undefined || text.trim() === '' ? {} : read(formats[format], text.replace(BYTE_ORDER_MARK, ''), name)

/** The file with the fields of the set-up. `text`: undefined if there is no file yet. `name` is for errors. */
export function editFile(file: ProgramFile, text: string | undefined, name: string): EditedFile {
  const format = formats[file.format]
  const isNew = text === undefined || text.trim() === ''
  const mark = text?.startsWith(BYTE_ORDER_MARK) === true ? BYTE_ORDER_MARK : ''
  const written = isNew ? format.empty : text.slice(mark.length)
  const before = read(format, written, name)
  const wanted = isNew ? { ...file.fieldsOfNewFile, ...file.fields } : file.fields
  const changes = changesOf(before, wanted, [], name)
  if (changes.length === 0) return { text: text ?? '', changes }
  // Lines that all end with CR LF are edited as usual lines. In a mixture, only new lines end with LF.
  const isCrLf = written.includes('\r\n') && !/\r(?!\n)|(?<!\r)\n/.test(written)
  try {
    const lines = changes.reduce(
      (sofar, { path, before: old, after }) => applyEdits(sofar, checked(sofar, format.set(sofar, path, after), old)),
      isCrLf ? written.replaceAll('\r\n', '\n') : written,
    )
    const edited = isCrLf ? lines.replaceAll('\n', '\r\n') : lines
    if (isDeepStrictEqual(plain(format.parse(edited)), applied(before, changes)))
      return { text: mark + edited, changes }
  } catch (fault) {
    if (fault instanceof Problem) throw fault
  }
  // The file is written in a way that the editing above does not understand.
  throw new Problem(`${name} cannot be changed without risk. Add the fields by hand: run the command without --write.`)
}

/** A field that is added replaces nothing but white space. */
function checked(text: string, edits: readonly TextEdit[], before: unknown): readonly TextEdit[] {
  const isSafe = before !== undefined || edits.every(({ start, end }) => text.slice(start, end).trim() === '')
  if (!isSafe) throw new Error('the edit would remove other text')
  return edits
}

function read(format: Format, text: string, name: string): Fields {
  let value: unknown
  try {
    value = plain(format.parse(text))
  } catch (fault) {
    throw new Problem(
      `${name} cannot be read: ${(fault as Error).message.split('\n')[0]!.replace(/\.$/, '')}. Correct it first.`,
    )
  }
  if (!isFields(value)) throw new Problem(`${name} must have fields with names at its top. Correct it first.`)
  return value
}

/** Parsers return objects without the usual prototype, and dates. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? {}))

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function changesOf(before: Fields, wanted: FileFields, path: FieldPath, name: string): readonly FieldChange[] {
  return Object.entries(wanted).flatMap(([field, after]): readonly FieldChange[] => {
    const current = Object.hasOwn(before, field) ? before[field] : undefined
    const here = [...path, field]
    const wrong = (expected: string): Problem =>
      new Problem(`${here.join('.')} in ${name} must be ${expected}. Correct it first.`)
    if (Array.isArray(after)) {
      if (current !== undefined && !Array.isArray(current)) throw wrong('a list')
      return listChanges(current ?? [], after as readonly FileFields[], here, name)
    }
    if (isFields(after)) {
      if (current !== undefined && !isFields(current)) throw wrong('an object')
      return changesOf(current ?? {}, after as FileFields, here, name)
    }
    return isDeepStrictEqual(current, after) ? [] : [{ path: here, before: current, after }]
  })
}

/** An entry of a list is known by its name. Others stay. */
function listChanges(
  before: readonly unknown[],
  wanted: readonly FileFields[],
  path: FieldPath,
  name: string,
): readonly FieldChange[] {
  let length = before.length
  return wanted.flatMap(entry => {
    const at = before.findIndex(one => isFields(one) && one.name === entry.name)
    if (at >= 0) return changesOf(before[at] as Fields, entry, [...path, at], name)
    return [{ path: [...path, length++], before: undefined, after: entry }]
  })
}

/** The fields after the changes, as a check of the edited text. */
function applied(before: Fields, changes: readonly FieldChange[]): unknown {
  const result = structuredClone(before)
  for (const { path, after } of changes) {
    let holder: Record<string | number, unknown> = result
    path.slice(0, -1).forEach((step, at) => {
      holder[step] ??= typeof path[at + 1] === 'number' ? [] : {}
      holder = holder[step] as Fields
    })
    holder[path.at(-1)!] = after
  }
  return plain(result)
}

const formats: Readonly<Record<FileFormat, Format>> = {
  json: { empty: '{}\n', parse: text => Bun.JSONC.parse(text), set: setInJson },
  yaml: { empty: '', parse: text => parseYaml(text) as unknown, set: setInYaml },
  toml: { empty: '', parse: text => Bun.TOML.parse(text), set: setInToml },
  env: { empty: '', parse: parseVariables, set: setVariable },
}
