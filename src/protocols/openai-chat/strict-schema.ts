// Finds out whether an upstream of OpenAI's dialects can hold a model to a schema (`strict`). OpenAI refuses a request
// whose schema is not in this subset: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
import type { Conversation } from '../neutral/conversation.ts'
import { mapSchema } from '../neutral/map-schema.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** Fields that are sent as they are. */
const PLAIN_FIELDS = new Set([
  'type',
  'title',
  'description',
  'enum',
  'const',
  'multipleOf',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minItems',
  'maxItems',
  'required',
  'additionalProperties',
])

/** Fields that restrict no answer. OpenAI refuses some of them, so all are left out. */
const DROPPED_FIELDS = new Set([
  '$schema',
  '$id',
  '$comment',
  'default',
  'example',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
])

const TYPES: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'null', 'object', 'array']

const FORMATS: readonly unknown[] = [
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
]

/** Formats in Google's schemas that say no more than the type of a number. */
const NUMBER_FORMATS: readonly unknown[] = ['int32', 'int64', 'float', 'double']

/** OpenAI accepts no pattern that looks ahead or back. */
const LOOK_AROUND = /\(\?<?[=!]/

const DEFINITION_FIELDS = ['$defs', 'definitions'] as const

const OBJECT_FIELDS = ['properties', 'required', 'additionalProperties'] as const

const OBJECT_LEVELS_MAX = 10
const PROPERTIES_MAX = 5_000
const LISTED_VALUES_MAX = 1_000
/** Of the names of properties and definitions, and of listed values. */
const CHARS_MAX = 120_000

/** Schemas inside schemas that are no objects. */
const DEPTH_MAX = 64

export interface WantedSchema {
  readonly schema: Json
  readonly strict?: boolean | undefined
}

export interface SentSchema extends WantedSchema {
  /** The caller wants the model to be held to the schema, and the upstream is not asked to do it. */
  readonly isWeaker: boolean
}

interface StrictOptions {
  readonly followsStrictRules: Conversation['followsStrictRules']
  readonly knowsStrict: boolean
}

/** Callers of OpenAI's dialects know OpenAI's rules, so that the strictness that they ask for stays as it is. */
export function writeStrictness(wanted: WantedSchema, options: StrictOptions): SentSchema {
  const { strict } = wanted
  const { followsStrictRules, knowsStrict } = options
  const schema = mapSchema(wanted.schema, addItems)
  if (followsStrictRules === true) return { schema, strict, isWeaker: false }
  if (strict !== true) return { schema, strict: knowsStrict ? strict : undefined, isWeaker: false }
  const converted = knowsStrict ? toStrictSchema(schema) : undefined
  if (converted === undefined) return { schema, isWeaker: true }
  return { schema: converted, strict: true, isWeaker: false }
}

/** OpenAI refuses a list that does not say what is in it, and takes the empty schema for anything. */
function addItems(schema: Json): Json {
  const isList = listOf(schema.type).includes('array')
  return isList && schema.items === undefined && schema.prefixItems === undefined ? { ...schema, items: {} } : schema
}

/** The schema with all of its objects closed. Undefined: OpenAI would refuse it. */
export function toStrictSchema(schema: Json): Json | undefined {
  const conversion = new StrictConversion(schema)
  const converted = conversion.convert(schema, { depth: 0, levels: 0 })
  const isObjectSchema = converted.type === 'object'
  return conversion.isAccepted && isObjectSchema ? converted : undefined
}

interface Place {
  readonly depth: number
  /** How many objects are around the schema. */
  readonly levels: number
}

class StrictConversion {
  isAccepted = true
  readonly #root: Json
  #propertyCount = 0
  #valueCount = 0
  #chars = 0

  constructor(root: Json) {
    this.#root = root
  }

  convert(value: unknown, place: Place): Json {
    if (!isObject(value) || place.depth > DEPTH_MAX) return this.#refuse()
    if (value.$ref !== undefined) return this.#convertReference(value)
    const types = listOf(value.type)
    const isObjectType = types.includes('object')
    const inner: Place = { depth: place.depth + 1, levels: place.levels + (isObjectType ? 1 : 0) }
    if (inner.levels > OBJECT_LEVELS_MAX) return this.#refuse()
    const written: Record<string, unknown> = {}
    for (const name of Object.keys(value)) {
      const converted = this.#convertField(name, value, inner)
      if (converted !== undefined) written[name] = converted
    }
    this.#countValues(value)
    this.#checkShape(value, types)
    return isObjectType ? this.#closeObject(written) : written
  }

  #refuse(): Json {
    this.isAccepted = false
    return {}
  }

  /** Undefined: the field is left out. */
  #convertField(name: string, schema: Json, place: Place): unknown {
    const value = schema[name]
    if (PLAIN_FIELDS.has(name)) return value
    if (DROPPED_FIELDS.has(name)) return undefined
    switch (name) {
      case 'items':
        return this.convert(value, place)
      case 'anyOf':
        return Array.isArray(value) ? value.map(variant => this.convert(variant, place)) : this.#refuse()
      case 'properties':
        this.#propertyCount += isObject(value) ? Object.keys(value).length : 0
        return this.#convertMap(value, place)
      case '$defs':
      case 'definitions':
        // References find definitions at the root only.
        return schema === this.#root ? this.#convertMap(value, { depth: 1, levels: 0 }) : this.#refuse()
      case 'pattern':
        return typeof value === 'string' && !LOOK_AROUND.test(value) ? value : this.#refuse()
      case 'format':
        if (NUMBER_FORMATS.includes(value)) return undefined
        return FORMATS.includes(value) ? value : this.#refuse()
      default:
        return this.#refuse()
    }
  }

  #convertMap(map: unknown, place: Place): Json {
    if (!isObject(map)) return this.#refuse()
    const names = Object.keys(map)
    this.#addChars(names)
    if (this.#propertyCount > PROPERTIES_MAX) return this.#refuse()
    return Object.fromEntries(names.map(name => [name, this.convert(map[name], place)]))
  }

  /** OpenAI takes nothing beside a reference. A description would be lost, so such a schema is not converted. */
  #convertReference(schema: Json): Json {
    const { $ref: reference } = schema
    const isAlone = Object.keys(schema).every(name => name === '$ref' || name === 'title' || DROPPED_FIELDS.has(name))
    return isAlone && this.#isDefined(reference) ? { $ref: reference } : this.#refuse()
  }

  #isDefined(reference: unknown): boolean {
    if (typeof reference !== 'string') return false
    return (
      reference === '#' ||
      DEFINITION_FIELDS.some(field => {
        const [start, definitions] = [`#/${field}/`, this.#root[field]]
        return (
          reference.startsWith(start) &&
          isObject(definitions) &&
          Object.hasOwn(definitions, reference.slice(start.length))
        )
      })
    )
  }

  #countValues(schema: Json): void {
    const { enum: listed = [] } = schema
    if (!Array.isArray(listed)) this.#refuse()
    const values: readonly unknown[] = [...listOf(listed), ...(Object.hasOwn(schema, 'const') ? [schema.const] : [])]
    if (values.some(value => typeof value === 'object' && value !== null)) this.#refuse()
    this.#valueCount += values.length
    if (this.#valueCount > LISTED_VALUES_MAX) this.#refuse()
    this.#addChars(values.filter(value => typeof value === 'string'))
  }

  #addChars(texts: readonly string[]): void {
    for (const text of texts) this.#chars += text.length
    if (this.#chars > CHARS_MAX) this.#refuse()
  }

  /** Each schema has known types, or alternatives and no type. */
  #checkShape(schema: Json, types: readonly unknown[]): void {
    const hasAlternatives = schema.anyOf !== undefined
    const isTyped = types.length > 0 && types.every(type => TYPES.includes(type))
    if (hasAlternatives ? schema.type !== undefined || schema.enum !== undefined : !isTyped) this.#refuse()
    if (types.includes('array') !== (schema.items !== undefined)) this.#refuse()
    if (!types.includes('object') && OBJECT_FIELDS.some(name => schema[name] !== undefined)) this.#refuse()
  }

  /** An object about whose properties nothing is said is a map, which cannot be closed. */
  #closeObject(schema: Json): Json {
    const { additionalProperties } = schema
    const isMap = additionalProperties === undefined ? schema.properties === undefined : additionalProperties !== false
    const { properties = {}, required = [] } = schema
    if (isMap || !isObject(properties) || !Array.isArray(required)) return this.#refuse()
    const [names, requiredNames] = [Object.keys(properties), new Set<unknown>(required)]
    const hasAll = requiredNames.size === names.length && names.every(name => requiredNames.has(name))
    return hasAll ? { ...schema, properties, required, additionalProperties: false } : this.#refuse()
  }
}

const listOf = (value: unknown): readonly unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? (value as readonly unknown[]) : [value]
