// Finds the definitions of a schema that its references name, and puts them in place of the references.

import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

export interface Definition {
  readonly key: string
  readonly schema: Json
}

/** Finds a definition at the root. Other references cannot be sent. */
export function findDefinition(root: Json, reference: unknown): Definition | undefined {
  const [, field, encoded] =
    (typeof reference === 'string' && /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference)) || []
  if (field === undefined || encoded === undefined) return undefined
  const definitions = root[field]
  const name = decodeName(encoded)
  if (!isObject(definitions) || !Object.hasOwn(definitions, name)) return undefined
  const schema = definitions[name]
  return isObject(schema) ? { key: `${field}/${name}`, schema } : undefined
}

/** Fields of which a schema that refers to a definition can have its own. */
const SHARED_FIELDS = ['properties', 'required', 'allOf', 'anyOf', 'oneOf'] as const

/** A definition with the fields beside the reference to it. What both of them have stays in two parts, which both hold. */
export function joinDefinition(definition: Json, beside: Json): Json {
  const isShared = SHARED_FIELDS.some(name => definition[name] !== undefined && beside[name] !== undefined)
  if (!isShared) return { ...definition, ...beside }
  const parts = Array.isArray(beside.allOf) ? (beside.allOf as readonly unknown[]) : []
  return { ...beside, allOf: [...parts, definition] }
}

function decodeName(encoded: string): string {
  try {
    return decodeURIComponent(encoded).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return encoded
  }
}
