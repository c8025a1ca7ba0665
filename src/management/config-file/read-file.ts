// Reads a configuration file and checks everything in it that can be checked without a gateway.

import type * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { pathOfBrokenText } from '../../base/text/broken-text.ts'
import { nearestName } from '../../base/text/nearest-name.ts'
import { issueText } from '../web/issue-text.ts'
import { ConfigFileError } from './config-file-error.ts'
import type { ListName, SecretReference } from './file-schema.ts'
import { entrySchemas, fileSchema } from './file-schema.ts'
import type { Fields } from './requests.ts'
import type { YamlDocument } from './yaml-document.ts'
import { parseYaml } from './yaml-document.ts'

/** An entry of a list. */
export interface FileEntry {
  readonly list: ListName
  /** Its place in the list. */
  readonly index: number
  readonly fields: Fields
}

export interface ConfigFile {
  readonly name: string
  /** Undefined for a list that the file does not have. */
  entries(list: ListName): readonly FileEntry[] | undefined
  readonly settings: Fields
  /** A problem with the file and the line of the field. */
  problemAt(path: readonly PropertyKey[], text: string): string
}

export interface ReferredSecret {
  readonly reference: SecretReference
  readonly path: readonly PropertyKey[]
}

/** The secrets that a file refers to. */
export const secretReferences = (file: ConfigFile): readonly ReferredSecret[] =>
  (['channels', 'webhooks'] as const).flatMap(list =>
    (file.entries(list) ?? []).flatMap(({ index, fields }) => {
      const field = list === 'channels' ? 'credential' : 'secret'
      const reference = fields[field] as SecretReference | undefined
      return reference === undefined ? [] : [{ reference, path: [list, index, field] }]
    }),
  )

type Issue = z.core.$ZodIssue

export function readConfigFile(text: string, name: string): ConfigFile {
  const document = parseYaml(text, name)
  const problemAt = (path: readonly PropertyKey[], problem: string): string =>
    `${name}:${document.lineOf(path)}: ${path.length === 0 ? '' : `${pathText(path)}: `}${problem}`
  const broken = pathOfBrokenText(document.value)
  if (broken !== undefined)
    throw new ConfigFileError([problemAt(broken, 'it must not contain half of a surrogate pair.')])
  // An empty file is a file without any list.
  const { success, data, error } = fileSchema.safeParse(document.value ?? {})
  if (!success)
    throw new ConfigFileError(error.issues.flatMap(issue => problemsOf(issue, document, problemAt)).toSorted(byLine))
  const { settings = {}, $schema: _, ...lists } = data
  const byList = new Map(
    Object.entries(lists).flatMap(([list, entries]) =>
      entries === undefined
        ? []
        : [[list, entries.map((fields, index) => ({ list: list as ListName, index, fields }))] as const],
    ),
  )
  return { name, settings, problemAt, entries: list => byList.get(list) }
}

const byLine = (one: string, other: string): number => lineIn(one) - lineIn(other)
const lineIn = (problem: string): number => Number(/:(\d+): /.exec(problem)?.[1] ?? 0)

/** `channels[0].credential` */
const pathText = (path: readonly PropertyKey[]): string =>
  path.map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at === 0 ? '' : '.'}${String(part)}`)).join('')

function problemsOf(issue: Issue, document: YamlDocument, problemAt: ConfigFile['problemAt']): readonly string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map(key => problemAt([...issue.path, key], unknownFieldText(key, fieldsAt(issue.path))))
  }
  const value = valueAt(document.value, issue.path)
  if (value === undefined && issue.path.length > 0) {
    return [problemAt(issue.path, `this field is missing; ${rule(issue)}.`)]
  }
  const isUnquoted = issue.code === 'invalid_type' && issue.expected === 'string' && typeof value !== 'object'
  return [problemAt(issue.path, `${rule(issue)}.${isUnquoted ? ' Put it in quotes.' : ''}`)]
}

/** What the value must be. A sentence of the schema itself says more than the type. */
function rule(issue: Issue): string {
  if (issue.code === 'invalid_type' && !issue.message.startsWith('Invalid input')) return issue.message
  if (issue.code === 'invalid_format' && 'pattern' in issue && issue.message.startsWith('Invalid')) {
    return `it must match ${String(issue.pattern)}`
  }
  return issueText(issue)
}

function unknownFieldText(name: string, known: readonly string[]): string {
  const near = nearestName(name, known)
  return `there is no such field. ${near === undefined ? '' : `Did you mean "${near}"? `}Allowed: ${known.join(', ')}.`
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, part) => (at as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[part], value)

interface AnySchema {
  readonly shape?: Readonly<Record<string, AnySchema>>
  readonly element?: AnySchema
  readonly options?: readonly AnySchema[]
  /** Of a record whose names are given. */
  readonly keyType?: { readonly options?: readonly string[] }
  unwrap?(): AnySchema
}

/** The names of the fields that are allowed at a place of the file. */
function fieldsAt(path: readonly PropertyKey[]): readonly string[] {
  let schema: AnySchema | undefined = fileSchema as unknown as AnySchema
  for (const part of path) schema = innerOf(typeof part === 'number' ? schema?.element : schema?.shape?.[String(part)])
  return Object.keys(schema?.shape ?? {})
    .filter(field => field !== '$schema')
    .concat(schema?.keyType?.options ?? [])
}

/** The schema inside optional and nullable ones; of several options, the object. */
function innerOf(schema: AnySchema | undefined): AnySchema | undefined {
  if (schema === undefined || schema.shape !== undefined) return schema
  if (schema.options !== undefined) return schema.options.find(option => option.shape !== undefined)
  return schema.element === undefined && schema.unwrap !== undefined ? innerOf(schema.unwrap()) : schema
}

/** The sentence of a refusal, for checks that are written for requests. */
export function refusalText(check: () => unknown): string | undefined {
  try {
    check()
    return undefined
  } catch (fault) {
    if (fault instanceof Refusal) return fault.extras.hint?.text ?? fault.message
    throw fault
  }
}

export const optionalFields = (list: ListName): readonly string[] =>
  Object.entries(entrySchemas[list].shape).flatMap(([name, schema]) =>
    (schema as z.ZodType).safeParse(undefined).success ? [name] : [],
  )
