// What an operator has one channel send otherwise than its callers ask: headers besides, and fields of requests that
// are set, filled in or left out. Of a body every other byte stays as it was.

import { foldName } from '../base/text/json-bytes.ts'
import type { FieldChanges, Parameters } from '../store/rules/rules.ts'
import { bufferOf, rewriteFields, scanned } from './rewrite-fields.ts'

export interface Overrides {
  /** In lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** By dialect, as they are applied one after the other. */
  readonly fields: ReadonlyMap<string, readonly FieldOverride[]>
}

/** One field, or one of the object that lies in another. */
export interface FieldOverride {
  readonly name: string
  readonly inside: string | undefined
  readonly how: keyof FieldChanges
  /** JSON; empty where it is removed. */
  readonly value: string
}

/** Undefined where nothing is to be changed, so that nobody looks. */
export function compileOverrides(
  headers: Readonly<Record<string, string>>,
  parameters: Parameters,
): Overrides | undefined {
  const fields = new Map(
    Object.entries(parameters)
      .map(([dialect, changes]) => [dialect, fieldsOf(changes)] as const)
      .filter(([, list]) => list.length > 0),
  )
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return fields.size === 0 && Object.keys(lower).length === 0 ? undefined : { headers: lower, fields }
}

export function fieldsOf(changes: FieldChanges): readonly FieldOverride[] {
  const row = (how: keyof FieldChanges, path: string, value = ''): FieldOverride => {
    const dot = path.indexOf('.')
    return { name: path.slice(dot + 1), inside: dot < 0 ? undefined : path.slice(0, dot), how, value }
  }
  const valued = (how: 'set' | 'default'): readonly FieldOverride[] =>
    Object.entries(changes[how] ?? {}).map(([path, value]) => row(how, path, JSON.stringify(value)))
  return [...(changes.remove ?? []).map(path => row('remove', path)), ...valued('default'), ...valued('set')]
}

export interface Overridden {
  readonly body: Uint8Array
  /** What is not as the caller had it. */
  readonly names: readonly string[]
}

/** Undefined where the body already is as it should be. */
export function overrideFields(body: Uint8Array, fields: readonly FieldOverride[]): Overridden | undefined {
  const bytes = bufferOf(body)
  const scan = scanned(bytes)
  const nameIn = (name: string): string =>
    scan.fields.has(name) ? name : ([...scan.fields.keys()].find(other => foldName(other) === foldName(name)) ?? name)
  const textOf = (name: string): string | undefined => {
    const span = scan.fields.get(name)
    return span && bytes.toString('utf8', span.start, span.end)
  }
  const edits = new Map<string, string | undefined>()
  const names: string[] = []
  const own = fields.filter(({ inside }) => inside === undefined)
  for (const field of own) {
    const name = nameIn(field.name)
    const before = edits.has(name) ? edits.get(name) : textOf(name)
    const after = valueOf(field, before)
    if (after === before && !(field.how !== 'default' && scan.duplicates.has(name))) continue
    edits.set(name, after)
    names.push(field.name)
  }
  for (const written of new Set(fields.flatMap(({ inside }) => inside ?? []))) {
    const inner = fields.filter(({ inside }) => inside === written).map(field => ({ ...field, inside: undefined }))
    const outer = nameIn(written)
    const before = textOf(outer)
    const changed = overrideFields(Buffer.from(isObject(before) ? before : '{}'), inner)
    if (changed === undefined) continue
    edits.set(outer, bufferOf(changed.body).toString('utf8'))
    names.push(...changed.names.map(name => `${written}.${name}`))
  }
  return edits.size === 0 ? undefined : { body: rewriteFields(bytes, edits, scan), names }
}

const isObject = (json: string | undefined): json is string => json?.startsWith('{') ?? false

function valueOf({ how, value }: FieldOverride, before: string | undefined): string | undefined {
  if (how === 'remove') return undefined
  return how === 'default' ? (before ?? value) : value
}
