// Walks through JSON Schemas.

import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

// Fields that hold one schema, a list of schemas, or an object with schemas by name.
const SCHEMA_FIELDS = new Set([
  'items',
  'additionalProperties',
  'not',
  'contains',
  'propertyNames',
  'if',
  'then',
  'else',
])
const SCHEMA_LIST_FIELDS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items'])
const SCHEMA_MAP_FIELDS = new Set(['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas'])

type Change = (schema: Json) => Json

/** Applies `change` to each schema, the outer ones first. What does not change is not copied. */
export const mapSchema = (schema: Json, change: Change): Json =>
  mapFields(change(schema), (value, name) => mapField(name, value, change))

function mapField(name: string, value: unknown, change: Change): unknown {
  if (SCHEMA_LIST_FIELDS.has(name) && Array.isArray(value)) return mapList(value, change)
  if (!isObject(value)) return value
  if (SCHEMA_FIELDS.has(name)) return mapSchema(value, change)
  return SCHEMA_MAP_FIELDS.has(name) ? mapFields(value, inner => mapInner(inner, change)) : value
}

function mapList(list: readonly unknown[], change: Change): readonly unknown[] {
  const mapped = list.map(inner => mapInner(inner, change))
  return mapped.some((inner, at) => inner !== list[at]) ? mapped : list
}

function mapFields(object: Json, map: (value: unknown, name: string) => unknown): Json {
  let copy: Record<string, unknown> | undefined
  for (const name of Object.keys(object)) {
    const mapped = map(object[name], name)
    if (mapped !== object[name]) (copy ??= { ...object })[name] = mapped
  }
  return copy ?? object
}

const mapInner = (inner: unknown, change: Change): unknown => (isObject(inner) ? mapSchema(inner, change) : inner)
