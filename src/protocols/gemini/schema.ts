// Schemas. Google has two ways to be told one: its own subset of OpenAPI's, with types in capitals, and JSON Schema.
// Others know the latter, so the former is read into it and only the latter is written.
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { asList } from './input.ts'
import { camel } from './spelling.ts'

type Schema = Record<string, unknown>

/** Fields that hold a schema, a list of schemas, or schemas by name. */
const one = new Set(['items', 'additionalProperties', 'not', 'contains', 'propertyNames', 'if', 'then', 'else'])
const lists = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items'])
const named = new Set(['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas'])

/** Whole numbers, which Google writes as texts. */
const counts = new Set([...['minItems', 'maxItems', 'minProperties', 'maxProperties', 'minLength', 'maxLength']])

/** Applies `change` to each schema, the outer ones first. */
function mapSchema(schema: Json, change: (schema: Json) => Schema): Schema {
  const changed = change(schema)
  for (const name of Object.keys(changed)) {
    const value = changed[name]
    if (lists.has(name) && Array.isArray(value)) {
      changed[name] = value.map((inner: unknown) => (isObject(inner) ? mapSchema(inner, change) : inner))
    } else if (one.has(name) && isObject(value)) {
      changed[name] = mapSchema(value, change)
    } else if (named.has(name) && isObject(value)) {
      const entries = Object.entries(value)
      changed[name] = Object.fromEntries(
        entries.map(([key, inner]) => [key, isObject(inner) ? mapSchema(inner, change) : inner]),
      )
    }
  }
  return changed
}

/** Google's subset as JSON Schema. */
export function fromOpenApi(schema: Json): Schema {
  return mapSchema(schema, readOpenApi)
}

function readOpenApi(schema: Json): Schema {
  const read: Schema = {}
  for (const spelled in schema) {
    const [name, value] = [camel(spelled), schema[spelled]]
    if (value === null || value === undefined || name === 'nullable' || name === 'propertyOrdering') continue
    if (name === 'type') readType(read, value)
    else if (name === 'example') read.examples = [value]
    else if (name === 'format' && value === 'enum') continue
    else read[name] = counts.has(name) && typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  }
  const order = schema.propertyOrdering ?? schema.property_ordering
  if (Array.isArray(order) && isObject(read.properties)) read.properties = ordered(read.properties, order)
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

function ordered(properties: Json, order: readonly unknown[]): Schema {
  const first = order.filter((name): name is string => typeof name === 'string' && Object.hasOwn(properties, name))
  return { ...Object.fromEntries(first.map(name => [name, properties[name]])), ...properties }
}

/** JSON Schema as Google takes it: without what only names the schema itself, and a constant as a choice of one. */
export function forGoogle(schema: Json): Schema {
  return mapSchema(schema, cleaned)
}

function cleaned(schema: Json): Schema {
  const { $schema: _version, $comment: _comment, ...rest } = schema
  if (!Object.hasOwn(rest, 'const')) return rest
  const { const: only, ...others } = rest
  return { ...others, enum: [only] }
}
