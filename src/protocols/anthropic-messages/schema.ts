// JSON Schema as this dialect's providers hold a model to it: bounds of numbers, texts and lists are refused there, so
// they are told in words instead, and every object is closed.
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

const BOUNDS = [
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength', 'pattern'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties', 'not'],
] as const

const FORMATS: readonly unknown[] = [
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
]

/** Hold one schema. */
const INNER = ['items', 'contains', 'if', 'then', 'else', 'propertyNames'] as const
/** Hold several. */
const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'] as const
/** Hold several by name. */
const MAPS = ['properties', '$defs', 'definitions', 'patternProperties'] as const

const DEPTH_MAX = 64

export interface HeldSchema {
  readonly schema: Json
  /** Something of it is only told in words. */
  readonly weaker: boolean
}

export function heldSchema(schema: Json): HeldSchema {
  let weaker = false

  function held(value: unknown, depth: number): unknown {
    if (!isObject(value) || depth > DEPTH_MAX) return value
    const kept: Record<string, unknown> = { ...value }
    const words: string[] = []
    for (const bound of BOUNDS) takeOut(kept, bound, words)
    if (kept.format !== undefined && !FORMATS.includes(kept.format)) takeOut(kept, 'format', words)
    if (words.length > 0) kept.description = [value.description, `{${words.join(', ')}}`].filter(Boolean).join('\n')
    weaker ||= words.length > 0
    for (const name of INNER) if (isObject(kept[name])) kept[name] = held(kept[name], depth + 1)
    for (const name of LISTS) {
      if (Array.isArray(kept[name])) kept[name] = kept[name].map((one: unknown) => held(one, depth + 1))
    }
    for (const name of MAPS) if (isObject(kept[name])) kept[name] = heldMap(kept[name], depth + 1)
    const isClosable = kept.type === 'object' || kept.properties !== undefined
    if (isClosable && kept.additionalProperties !== false) kept.additionalProperties = false
    return kept
  }

  function heldMap(map: Json, depth: number): Json {
    return Object.fromEntries(Object.entries(map).map(([name, one]) => [name, held(one, depth)]))
  }

  return { schema: held(schema, 0) as Json, weaker }
}

function takeOut(schema: Record<string, unknown>, name: string, words: string[]): void {
  if (schema[name] === undefined) return
  words.push(`${name}: ${JSON.stringify(schema[name])}`)
  delete schema[name]
}
