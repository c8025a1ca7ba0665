// Works out what a configuration file of another program must look like: the fields of the set-up are set, and everything
// else is kept, with comments.

import { isDeepStrictEqual } from 'node:util'
import { parseDocument, parse as parseYaml } from 'yaml'
import { Problem } from '../connect.ts'
import type { FieldPath } from './edit-json.ts'
import { setInJson } from './edit-json.ts'
import type { FileFields, FileFormat, FileValue, ProgramFile } from './program.ts'

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
  parse(text: string): unknown
  set(text: string, change: FieldChange): string
}

/** The file with the fields of the set-up. `text`: undefined if there is no file yet. `name` is for errors. */
export function editFile(file: ProgramFile, text: string | undefined, name: string): EditedFile {
  const format = formats[file.format]
  const isNew = text === undefined || text.trim() === ''
  const start = isNew ? '' : text
  const before = read(format, start, name)
  const wanted = isNew ? { ...file.fieldsOfNewFile, ...file.fields } : file.fields
  const changes = changesOf(before, wanted, [], name)
  try {
    const edited = changes.reduce((sofar, change) => format.set(sofar, change), start)
    if (isDeepStrictEqual(plain(format.parse(edited)), applied(before, changes))) return { text: edited, changes }
  } catch (fault) {
    if (fault instanceof Problem) throw fault
  }
  // The file is written in a way that the editing above does not understand.
  throw new Problem(`${name} cannot be changed without risk. Add the fields by hand: run the command without --write.`)
}

function read(format: Format, text: string, name: string): Fields {
  let value: unknown
  try {
    value = plain(format.parse(text))
  } catch (fault) {
    throw new Problem(`${name} cannot be read: ${(fault as Error).message.split('\n')[0]}. Correct it first.`)
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
  json: {
    parse: text => (text === '' ? {} : Bun.JSONC.parse(text)),
    set: (text, { path, after }) => `${setInJson(text === '' ? '{}' : text, path, after).trimEnd()}\n`,
  },
  yaml: {
    parse: text => parseYaml(text) as unknown,
    set(text, { path, after }) {
      const document = parseDocument(text)
      if (document.errors.length > 0) throw document.errors[0]!
      document.setIn(path, document.createNode(after))
      return document.toString({ lineWidth: 0 })
    },
  },
  toml: { parse: text => Bun.TOML.parse(text), set: setInToml },
  env: { parse: parseVariables, set: setVariable },
}

/** Sets one line of TOML. Multi-line values may mislead it; the caller checks the result. */
function setInToml(text: string, { path, after }: FieldChange): string {
  const lines = text === '' ? [] : text.trimEnd().split('\n')
  const table = path.slice(0, -1).join('.')
  const field = String(path.at(-1))
  const line = `${field} = ${JSON.stringify(after)}`
  const isHeader = (one: string): boolean => /^\s*\[/.test(one)
  const header = table === '' ? -1 : lines.findIndex(one => one.replaceAll(/[\s"]|#.*/g, '') === `[${table}]`)
  if (table !== '' && header < 0)
    return [...lines, ...(lines.length > 0 ? [''] : []), `[${table}]`, line, ''].join('\n')
  const next = lines.findIndex((one, at) => at > header && isHeader(one))
  const end = next < 0 ? lines.length : next
  const isField = new RegExp(String.raw`^\s*"?${RegExp.escape(field)}"?\s*=`)
  const at = lines.findIndex((one, index) => index > header && index < end && isField.test(one))
  if (at >= 0) return `${lines.with(at, line).join('\n')}\n`
  // Behind the last line of the table that is not empty, so that the line between two tables stays where it is.
  const last = lines.findLastIndex((one, index) => index < end && one.trim() !== '')
  const gap = last < header || (table === '' && last < 0 && lines.length > 0) ? [''] : []
  return `${lines.toSpliced(Math.max(last, header) + 1, 0, line, ...gap).join('\n')}\n`
}

const VARIABLE = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/

function parseVariables(text: string): Fields {
  const found = text.split('\n').flatMap(line => {
    const [, name, value] = VARIABLE.exec(line) ?? []
    return name === undefined ? [] : [[name, value!.replace(/^(['"])(.*)\1$/, '$2')] as const]
  })
  return Object.fromEntries(found)
}

function setVariable(text: string, { path, after }: FieldChange): string {
  const line = `${path[0]}=${String(after)}`
  const lines = text === '' ? [] : text.trimEnd().split('\n')
  const at = lines.findLastIndex(one => VARIABLE.exec(one)?.[1] === path[0])
  return `${(at < 0 ? [...lines, line] : lines.with(at, line)).join('\n')}\n`
}
