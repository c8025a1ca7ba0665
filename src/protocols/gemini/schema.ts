// Reads and writes schemas. Google accepts two forms: its own subset of OpenAPI schemas, with type names in capitals,
// and JSON Schema. Other dialects know JSON Schema only, so the OpenAPI form is converted and never written.
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { toCamelCase } from './field-names.ts'
import { asList } from './input.ts'

type Schema = Record<string, unknown>

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

/** Integers, which Google writes as strings. */
const INTEGER_FIELDS = new Set(['minItems', 'maxItems', 'minProperties', 'maxProperties', 'minLength', 'maxLength'])

/** Applies `change` to each schema, the outer ones first. */
function mapSchema(schema: Json, change: (schema: Json) => Schema): Schema {
  const changed = change(schema)
  for (const name of Object.keys(changed)) {
    const value = changed[name]
    if (SCHEMA_LIST_FIELDS.has(name) && Array.isArray(value)) {
      changed[name] = value.map((inner: unknown) => (isObject(inner) ? mapSchema(inner, change) : inner))
    } else if (SCHEMA_FIELDS.has(name) && isObject(value)) {
      changed[name] = mapSchema(value, change)
    } else if (SCHEMA_MAP_FIELDS.has(name) && isObject(value)) {
      const entries = Object.entries(value)
      changed[name] = Object.fromEntries(
        entries.map(([key, inner]) => [key, isObject(inner) ? mapSchema(inner, change) : inner]),
      )
    }
  }
  return changed
}

/** Converts Google's OpenAPI subset to JSON Schema. */
export function fromOpenApiSchema(schema: Json): Schema {
  return mapSchema(schema, readOpenApi)
}

function readOpenApi(schema: Json): Schema {
  const read: Schema = {}
  for (const fieldName in schema) {
    const [name, value] = [toCamelCase(fieldName), schema[fieldName]]
    if (value === null || value === undefined || name === 'nullable' || name === 'propertyOrdering') continue
    if (name === 'type') readType(read, value)
    else if (name === 'example') read.examples = [value]
    else if (name === 'format' && value === 'enum') continue
    else
      read[name] = INTEGER_FIELDS.has(name) && typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  }
  const order = schema.propertyOrdering ?? schema.property_ordering
  if (Array.isArray(order) && isObject(read.properties)) read.properties = sortProperties(read.properties, order)
  if (schema.nullable === true) allowNull(read)
  return read
}

function readType(read: Schema, value: unknown): void {
  const types = asList(value).map(type => (typeof type === 'string' ? type.toLowerCase() : type))
  const known = types.filter(type => type !== 'type_unspecified')
  if (known.length > 0) read.type = known.length === 1 ? known[0] : known
}

function allowNull(read: Schema): void {
  if (read.type !== undefined) read.type = [...new Set([...asList(read.type), 'null'])]
  if (Array.isArray(read.enum) && !read.enum.includes(null)) read.enum = [...(read.enum as unknown[]), null]
  if (Array.isArray(read.anyOf)) read.anyOf = [...(read.anyOf as unknown[]), { type: 'null' }]
}

function sortProperties(properties: Json, order: readonly unknown[]): Schema {
  const first = order.filter((name): name is string => typeof name === 'string' && Object.hasOwn(properties, name))
  return { ...Object.fromEntries(first.map(name => [name, properties[name]])), ...properties }
}

/** Converts JSON Schema to what Google accepts: without `$schema` and `$comment`, and `const` as an enum of one. */
export function toGoogleSchema(schema: Json): Schema {
  return mapSchema(schema, cleanSchema)
}

function cleanSchema(schema: Json): Schema {
  const { $schema: _version, $comment: _comment, ...rest } = schema
  if (!Object.hasOwn(rest, 'const')) return rest
  const { const: only, ...others } = rest
  return { ...others, enum: [only] }
}
