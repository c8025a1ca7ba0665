// Google reads every field in camelCase and in snake_case, and so does the gateway. A field that is there in both
// spellings is refused: the gateway might price one value while the upstream uses the other.

import { Refusal } from '../../base/errors.ts'
import type { FieldSpan } from '../../base/text/json-bytes.ts'
import { describeField } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'

/** Converts a field name to camelCase. */
export function toCamelCase(name: string): string {
  if (!name.includes('_')) return name
  return name.replace(/(?<=[A-Za-z0-9])_+([a-z0-9])/g, (_all, next: string) => next.toUpperCase())
}

/** Converts the names of an object's own fields to camelCase, not those of nested objects. Throws a Refusal. */
export function toCamelCaseFields(json: Json, path = ''): Json {
  let isCamel = true
  for (const name in json) if (name.includes('_')) isCamel = false
  if (isCamel) return json
  const fields: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const name in json) {
    const field = toCamelCase(name)
    if (field in fields) throw refuseDuplicate(path === '' ? field : `${path}.${field}`)
    fields[field] = json[name]
  }
  return fields
}

/**
 * Finds where the fields `wanted` are, in either spelling. Throws a Refusal for a field with unusual capitals: some
 * servers would accept it, and the gateway would have priced a call without it.
 */
export function findFieldSpans(
  spans: ReadonlyMap<string, FieldSpan>,
  wanted: readonly string[],
  path = '',
): FieldSpans {
  const found: Record<string, FieldSpan> = {}
  const byLowerCase = new Map(wanted.map(name => [name.toLowerCase(), name]))
  for (const [name, span] of spans) {
    const field = toCamelCase(name)
    const match = byLowerCase.get(field.replaceAll('_', '').toUpperCase().toLowerCase())
    if (match === undefined) continue
    if (field !== match || found[match] !== undefined) throw refuseDuplicate(path === '' ? match : `${path}.${match}`)
    found[match] = span
  }
  return found
}

export type FieldSpans = Readonly<Record<string, FieldSpan | undefined>>

export function refuseDuplicate(field: string): Refusal {
  return new Refusal('field_duplicate', field, describeField(field, 'may occur only once'))
}
