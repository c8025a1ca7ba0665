// Google reads every field in camelCase and in snake_case, and so does the gateway. A field that is there in both
// spellings is refused: the gateway might price one value while the upstream uses the other.

import { Refusal } from '../../base/errors.ts'
import type { FieldSpan } from '../../base/text/json-bytes.ts'
import { at } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'

/** Converts a field name to camelCase. */
export function camel(name: string): string {
  if (!name.includes('_')) return name
  return name.replace(/(?<=[A-Za-z0-9])_+([a-z0-9])/g, (_all, next: string) => next.toUpperCase())
}

/** Converts the names of an object's own fields to camelCase, not those of nested objects. Throws a Refusal. */
export function camelFields(json: Json, path = ''): Json {
  let isCamel = true
  for (const name in json) if (name.includes('_')) isCamel = false
  if (isCamel) return json
  const fields: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const name in json) {
    const field = camel(name)
    if (field in fields) throw twice(path === '' ? field : `${path}.${field}`)
    fields[field] = json[name]
  }
  return fields
}

/**
 * Finds where the fields `wanted` are, in either spelling. Throws a Refusal for a field with unusual capitals: some
 * servers would accept it, and the gateway would have priced a call without it.
 */
export function spansOf(spans: ReadonlyMap<string, FieldSpan>, wanted: readonly string[], path = ''): Spans {
  const found: Record<string, FieldSpan> = {}
  const byLowerCase = new Map(wanted.map(name => [name.toLowerCase(), name]))
  for (const [name, span] of spans) {
    const field = camel(name)
    const match = byLowerCase.get(field.replaceAll('_', '').toUpperCase().toLowerCase())
    if (match === undefined) continue
    if (field !== match || found[match] !== undefined) throw twice(path === '' ? match : `${path}.${match}`)
    found[match] = span
  }
  return found
}

export type Spans = Readonly<Record<string, FieldSpan | undefined>>

export function twice(field: string): Refusal {
  return new Refusal('field_duplicate', field, at(field, 'may occur only once'))
}
