// Applies the overrides that an operator configures for a channel: additional headers, and request fields that are set,
// filled in by default or removed. All other bytes of a body stay unchanged.

import { foldName } from '../base/text/json-bytes.ts'
import type { ChannelParameters, FieldChanges } from '../store/rules/rules.ts'
import { bufferOf, rewriteFields, scanBody } from './field-edits.ts'

export interface Overrides {
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** By dialect, in the order in which they are applied. */
  readonly fields: ReadonlyMap<string, readonly FieldOverride[]>
}

/** An override of one top-level field, or of one field inside the top-level object `inside`. */
export interface FieldOverride {
  readonly name: string
  readonly parent: string | undefined
  readonly action: keyof FieldChanges
  /** JSON; empty for a field that is removed. */
  readonly value: string
}

/** Undefined when there is nothing to change, so that calls do no extra work. */
export function compileOverrides(
  headers: Readonly<Record<string, string>>,
  parameters: ChannelParameters,
): Overrides | undefined {
  const fields = new Map(
    Object.entries(parameters)
      .map(([dialect, changes]) => [dialect, fieldsOf(changes)] as const)
      .filter(([, list]) => list.length > 0),
  )
  const lowerCased = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return fields.size === 0 && Object.keys(lowerCased).length === 0 ? undefined : { headers: lowerCased, fields }
}

export function fieldsOf(changes: FieldChanges): readonly FieldOverride[] {
  const override = (how: keyof FieldChanges, path: string, value = ''): FieldOverride => {
    const dot = path.indexOf('.')
    return { name: path.slice(dot + 1), parent: dot < 0 ? undefined : path.slice(0, dot), action: how, value }
  }
  const withValue = (how: 'set' | 'default'): readonly FieldOverride[] =>
    Object.entries(changes[how] ?? {}).map(([path, value]) => override(how, path, JSON.stringify(value)))
  return [...(changes.remove ?? []).map(path => override('remove', path)), ...withValue('default'), ...withValue('set')]
}

export interface Overridden {
  readonly body: Uint8Array
  /** The names of the fields that were changed. */
  readonly names: readonly string[]
}

/** Undefined when the body needs no change. */
export function overrideFields(body: Uint8Array, fields: readonly FieldOverride[]): Overridden | undefined {
  const bytes = bufferOf(body)
  const scan = scanBody(bytes)
  // The name as the caller wrote it, which may differ in case.
  const nameInBody = (name: string): string =>
    scan.fields.has(name) ? name : ([...scan.fields.keys()].find(other => foldName(other) === foldName(name)) ?? name)
  const textOf = (name: string): string | undefined => {
    const span = scan.fields.get(name)
    return span && bytes.toString('utf8', span.start, span.end)
  }
  const edits = new Map<string, string | undefined>()
  const names: string[] = []
  const topLevel = fields.filter(({ parent }) => parent === undefined)
  for (const field of topLevel) {
    const name = nameInBody(field.name)
    const before = edits.has(name) ? edits.get(name) : textOf(name)
    const after = valueOf(field, before)
    if (after === before && !(field.action !== 'default' && scan.duplicates.has(name))) continue
    edits.set(name, after)
    names.push(field.name)
  }
  for (const parent of new Set(fields.flatMap(({ parent }) => parent ?? []))) {
    const inner = fields
      .filter(({ parent: inside }) => inside === parent)
      .map(field => ({ ...field, parent: undefined }))
    const outer = nameInBody(parent)
    const before = textOf(outer)
    const changed = overrideFields(Buffer.from(isObject(before) ? before : '{}'), inner)
    if (changed === undefined) continue
    edits.set(outer, bufferOf(changed.body).toString('utf8'))
    names.push(...changed.names.map(name => `${parent}.${name}`))
  }
  return edits.size === 0 ? undefined : { body: rewriteFields(bytes, edits, scan), names }
}

const isObject = (json: string | undefined): json is string => json?.startsWith('{') ?? false

function valueOf({ action, value }: FieldOverride, before: string | undefined): string | undefined {
  if (action === 'remove') return undefined
  return action === 'default' ? (before ?? value) : value
}
