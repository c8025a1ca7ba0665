// Google reads every field in camelCase and in snake_case, and so do we. The same field in both is two wishes, of which
// we would have priced one and the upstream heeded the other.

import { Refusal } from '../../base/errors.ts'
import type { FieldSpan } from '../../base/text/json-bytes.ts'
import { at } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'

/** The name in camelCase. */
export function camel(name: string): string {
  if (!name.includes('_')) return name
  return name.replace(/(?<=[A-Za-z0-9])_+([a-z0-9])/g, (_all, next: string) => next.toUpperCase())
}

/** The object with its own fields in camelCase; what is in them stays as it is. Throws a Refusal. */
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
 * Where one of `wanted` lies, in whichever spelling. One in odd capitals is refused: some servers would heed it, and
 * then we would have priced another call.
 */
export function spansOf(spans: ReadonlyMap<string, FieldSpan>, wanted: readonly string[], path = ''): Spans {
  const found: Record<string, FieldSpan> = {}
  const folded = new Map(wanted.map(name => [name.toLowerCase(), name]))
  for (const [name, span] of spans) {
    const field = camel(name)
    const meant = folded.get(field.replaceAll('_', '').toUpperCase().toLowerCase())
    if (meant === undefined) continue
    if (field !== meant || found[meant] !== undefined) throw twice(path === '' ? meant : `${path}.${meant}`)
    found[meant] = span
  }
  return found
}

export type Spans = Readonly<Record<string, FieldSpan | undefined>>

export function twice(field: string): Refusal {
  return new Refusal('field_duplicate', field, at(field, 'may stand once'))
}
