// Reads and writes schemas. Google accepts two forms: its own subset of OpenAPI schemas, with type names in capitals,
// and JSON Schema. Other dialects know JSON Schema only, so the OpenAPI form is converted and never written.
import { mapSchema } from '../neutral/map-schema.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { toCamelCase } from './field-names.ts'
import { asList } from './input.ts'

type Schema = Record<string, unknown>

/** Integers, which Google writes as strings. */
const INTEGER_FIELDS = new Set(['minItems', 'maxItems', 'minProperties', 'maxProperties', 'minLength', 'maxLength'])

/** Converts Google's OpenAPI subset to JSON Schema. */
export function fromOpenApiSchema(schema: Json): Json {
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
  if (Array.isArray(read.enum)) read.enum = read.enum.map(value => readListedValue(value, asList(read.type)))
  if (schema.nullable === true) allowNull(read)
  return read
}

function readType(read: Schema, value: unknown): void {
  const types = asList(value).map(type => (typeof type === 'string' ? type.toLowerCase() : type))
  const known = types.filter(type => type !== 'type_unspecified')
  if (known.length > 0) read.type = known.length === 1 ? known[0] : known
}

/** Google's form lists texts only, whatever the type of the values is. */
function readListedValue(value: unknown, types: readonly unknown[]): unknown {
  if (typeof value !== 'string' || types.includes('string')) return value
  if (types.includes('boolean') && (value === 'true' || value === 'false')) return value === 'true'
  const isNumber = types.includes('number') ? NUMBER.test(value) : types.includes('integer') && INTEGER.test(value)
  return isNumber ? Number(value) : value
}

const INTEGER = /^-?\d+$/
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i

function allowNull(read: Schema): void {
  if (read.type !== undefined) read.type = [...new Set([...asList(read.type), 'null'])]
  if (Array.isArray(read.enum) && !read.enum.includes(null)) read.enum = [...(read.enum as unknown[]), null]
  if (Array.isArray(read.anyOf)) read.anyOf = [...(read.anyOf as unknown[]), { type: 'null' }]
}

function sortProperties(properties: Json, order: readonly unknown[]): Schema {
  const first = order.filter((name): name is string => typeof name === 'string' && Object.hasOwn(properties, name))
  return { ...Object.fromEntries(first.map(name => [name, properties[name]])), ...properties }
}

/** Fields that Google lets stand beside a reference. It refuses the request if there is any other. */
const isAllowedBesideReference = (name: string): boolean =>
  name.startsWith('$') || name === 'description' || name === 'default'

/** Fields that restrict no answer, so that nothing is lost without them. */
const ANNOTATIONS = new Set(['title', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly', 'definitions'])

/** Fields that restrict an answer and that Google takes, but does not hold the model to. */
const RESTRICTIONS_WITHOUT_EFFECT = [
  'pattern',
  'minLength',
  'maxLength',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'uniqueItems',
  'contains',
  'minProperties',
  'maxProperties',
  'propertyNames',
  'patternProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  'dependencies',
  'dependentRequired',
  'dependentSchemas',
  'allOf',
  'not',
  'then',
  'else',
] as const

export interface GoogleSchema {
  readonly schema: Json
  /** Google does not hold the model to all of the schema. */
  readonly isWeaker: boolean
}

/** Converts JSON Schema to the subset that Google accepts. */
export function toGoogleSchema(schema: Json): GoogleSchema {
  let isWeaker = false
  const addLoss = (): void => {
    isWeaker = true
  }
  const movesDefinitions = isObject(schema.definitions) && schema.$defs === undefined
  const { definitions, ...rest } = schema
  const root = movesDefinitions ? { ...rest, $defs: definitions } : schema
  const converted = mapSchema(root, inner => cleanSchema(inner, movesDefinitions, addLoss))
  return { schema: converted, isWeaker }
}

const OLD_DEFINITIONS = '#/definitions/'

/** Google knows definitions under their new name only. */
const writeReference = (reference: unknown, movesDefinitions: boolean): unknown =>
  movesDefinitions && typeof reference === 'string' && reference.startsWith(OLD_DEFINITIONS)
    ? `#/$defs/${reference.slice(OLD_DEFINITIONS.length)}`
    : reference

function cleanSchema(schema: Json, movesDefinitions: boolean, addLoss: () => void): Schema {
  const { $schema: _version, $comment: _comment, ...rest } = mergeSinglePart(schema)
  if (rest.$ref !== undefined) {
    const names = Object.keys(rest)
    if (names.some(name => !isAllowedBesideReference(name) && !ANNOTATIONS.has(name))) addLoss()
    const allowed = Object.fromEntries(names.filter(isAllowedBesideReference).map(name => [name, rest[name]]))
    return { ...allowed, $ref: writeReference(rest.$ref, movesDefinitions) }
  }
  if (RESTRICTIONS_WITHOUT_EFFECT.some(name => restricts(name, rest[name]))) addLoss()
  return writeValues(rest, addLoss)
}

/** Whether the field with this value allows less than without it. */
function restricts(name: string, value: unknown): boolean {
  if (value === undefined) return false
  if (name.startsWith('unevaluated')) return value !== true
  return name.startsWith('min') ? value !== 0 : value !== false
}

/** Pydantic wraps a reference that has a description in an `allOf` of one, and Google knows no `allOf`. */
function mergeSinglePart(schema: Json): Json {
  if (!Array.isArray(schema.allOf) || schema.allOf.length !== 1) return schema
  const { allOf, ...rest } = schema
  const part: unknown = (allOf as unknown[])[0]
  if (!isObject(part)) return schema
  const hasConflict = Object.keys(rest).some(name => !DESCRIPTIONS.has(name) && part[name] !== undefined)
  return hasConflict ? schema : { ...part, ...rest }
}

const DESCRIPTIONS = new Set(['title', 'description', 'default'])

/** Google lists only texts and numbers; it knows no `const`. Other values become the type that they have. */
function writeValues(schema: Schema, addLoss: () => void): Schema {
  const values: unknown = Object.hasOwn(schema, 'const') ? [schema.const] : schema.enum
  if (!Array.isArray(values)) return schema
  const { const: _only, enum: _listed, ...others } = schema
  if (values.every(isListable)) return { ...others, enum: values }
  const alternatives = listAlternatives(values)
  const isUnion = others.anyOf !== undefined || others.oneOf !== undefined
  const isExact = alternatives !== undefined && !isUnion && values.includes(true) === values.includes(false)
  const described = isExact ? others : describeValues(others, values)
  if (!isExact) addLoss()
  if (alternatives === undefined || isUnion) return described
  const [first, ...more] = alternatives
  if (more.length === 0) return { ...described, ...first }
  const { type: _types, ...untyped } = described
  return { ...untyped, anyOf: alternatives }
}

const isListable = (value: unknown): boolean => typeof value === 'string' || typeof value === 'number'

/** Undefined: some value is an object or a list. */
function listAlternatives(values: readonly unknown[]): readonly Schema[] | undefined {
  if (values.some(value => typeof value === 'object' && value !== null)) return undefined
  const texts = values.filter(value => typeof value === 'string')
  const numbers = values.filter(value => typeof value === 'number')
  return [
    ...(texts.length > 0 ? [{ type: 'string', enum: texts }] : []),
    ...(numbers.length > 0 ? [{ type: 'number', enum: numbers }] : []),
    ...(values.some(value => typeof value === 'boolean') ? [{ type: 'boolean' }] : []),
    ...(values.includes(null) ? [{ type: 'null' }] : []),
  ]
}

const describeValues = (schema: Schema, values: readonly unknown[]): Schema => ({
  ...schema,
  description: [schema.description, `{enum: ${JSON.stringify(values)}}`].filter(Boolean).join('\n'),
})
