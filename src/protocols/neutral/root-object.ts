// What the root of a schema describes. The arguments of a tool are an object, and so is each answer for which OpenAI takes
// a schema.

import type { Json } from '../request/json-type.ts'
import { findDefinition, joinDefinition } from './definitions.ts'

/** The schema with an object at its root. Undefined if it does not describe an object, or has alternatives at its root. */
export function toObjectSchema(schema: Json): Json | undefined {
  const { $ref: reference, ...beside } = schema
  const definition = reference === undefined ? {} : findDefinition(schema, reference)?.schema
  if (definition === undefined) return undefined
  const whole = joinDefinition(definition, beside)
  const hasAlternatives = (['$ref', 'anyOf', 'oneOf', 'allOf'] as const).some(name => whole[name] !== undefined)
  return !hasAlternatives && findType(whole) === 'object' ? { ...whole, type: 'object' } : undefined
}

export function findType({ type, properties, items }: Json): unknown {
  return type ?? (properties !== undefined ? 'object' : items !== undefined ? 'array' : undefined)
}

/** False if no object fits the schema, so that no JSON mode can give an answer to it. */
export function mayBeObject(schema: Json): boolean {
  const type = findType(schema)
  return type === undefined || type === 'object' || (Array.isArray(type) && type.includes('object'))
}
