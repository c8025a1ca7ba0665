// Finds the definitions of a schema that its references name.

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

function decodeName(encoded: string): string {
  try {
    return decodeURIComponent(encoded).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return encoded
  }
}
