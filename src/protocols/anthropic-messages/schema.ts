// Converts JSON Schema to the subset that this dialect's providers accept: they refuse limits on numbers, texts and
// lists, so these move into the description, and no object may have additional properties.
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

const UNSUPPORTED_FIELDS = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'not',
] as const

const SUPPORTED_FORMATS: readonly unknown[] = [
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
]

/** Fields that hold one schema. */
const SCHEMA_FIELDS = ['items', 'contains', 'if', 'then', 'else', 'propertyNames'] as const
/** Fields that hold a list of schemas. */
const SCHEMA_LIST_FIELDS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'] as const
/** Fields that hold schemas by name. */
const SCHEMA_MAP_FIELDS = ['properties', '$defs', 'definitions', 'patternProperties'] as const

const DEPTH_MAX = 64

export interface SupportedSchema {
  readonly schema: Json
  /** Some limits are only in a description, which does not bind the model. */
  readonly isWeaker: boolean
}

export function toSupportedSchema(schema: Json): SupportedSchema {
  let weaker = false

  function convert(value: unknown, depth: number): unknown {
    if (!isObject(value) || depth > DEPTH_MAX) return value
    const converted: Record<string, unknown> = { ...value }
    const words: string[] = []
    for (const field of UNSUPPORTED_FIELDS) moveToWords(converted, field, words)
    if (converted.format !== undefined && !SUPPORTED_FORMATS.includes(converted.format))
      moveToWords(converted, 'format', words)
    if (words.length > 0)
      converted.description = [value.description, `{${words.join(', ')}}`].filter(Boolean).join('\n')
    weaker ||= words.length > 0
    for (const name of SCHEMA_FIELDS)
      if (isObject(converted[name])) converted[name] = convert(converted[name], depth + 1)
    for (const name of SCHEMA_LIST_FIELDS) {
      if (Array.isArray(converted[name]))
        converted[name] = converted[name].map((inner: unknown) => convert(inner, depth + 1))
    }
    for (const name of SCHEMA_MAP_FIELDS)
      if (isObject(converted[name])) converted[name] = convertMap(converted[name], depth + 1)
    const isClosable = converted.type === 'object' || converted.properties !== undefined
    if (isClosable && converted.additionalProperties !== false) converted.additionalProperties = false
    return converted
  }

  function convertMap(map: Json, depth: number): Json {
    return Object.fromEntries(Object.entries(map).map(([name, inner]) => [name, convert(inner, depth)]))
  }

  return { schema: convert(schema, 0) as Json, isWeaker: weaker }
}

function moveToWords(schema: Record<string, unknown>, name: string, words: string[]): void {
  if (schema[name] === undefined) return
  words.push(`${name}: ${JSON.stringify(schema[name])}`)
  delete schema[name]
}
