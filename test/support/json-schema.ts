// Checks a value against a JSON schema (2020-12), as far as the OpenAPI description of the gateway uses it. A keyword
// that is not known here is an error, so that no keyword is ignored silently.

export type Schema = Readonly<Record<string, unknown>>

export type FindSchema = (ref: string) => Schema

type Check = (value: unknown, expected: unknown, context: Context) => readonly string[]

interface Context {
  readonly path: string
  readonly schema: Schema
  readonly find: FindSchema
}

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value

const isOfType = (value: unknown, type: unknown): boolean =>
  typeOf(value) === type || (type === 'number' && typeof value === 'number')

/** The problems of the value; none if it fits the schema. */
export function misfits(value: unknown, schema: Schema, find: FindSchema, path = '$'): readonly string[] {
  return Object.entries(schema).flatMap(([keyword, expected]) => {
    if (!Object.hasOwn(checks, keyword)) return [`${path}: the keyword "${keyword}" is not known`]
    return checks[keyword]!(value, expected, { path, schema, find })
  })
}

const nothing: Check = () => []
const problemUnless = (isRight: boolean, { path }: Context, problem: string): readonly string[] =>
  isRight ? [] : [`${path}: ${problem}`]
const ofNumber =
  (fits: (value: number, expected: number) => boolean, word: string): Check =>
  (value, expected, context) =>
    typeof value === 'number'
      ? problemUnless(fits(value, expected as number), context, `${value} is ${word} ${String(expected)}`)
      : []
const ofLength =
  (fits: (value: number, expected: number) => boolean, word: string): Check =>
  (value, expected, context) =>
    typeof value === 'string' || Array.isArray(value)
      ? problemUnless(
          fits(value.length, expected as number),
          context,
          `has ${value.length}, which is ${word} ${String(expected)}`,
        )
      : []

const ofProperties =
  (fits: (count: number, expected: number) => boolean, word: string): Check =>
  (value, expected, context) => {
    const count = isObject(value) ? Object.keys(value).length : undefined
    return problemUnless(
      count === undefined || fits(count, expected as number),
      context,
      `has ${count} fields, which is ${word} ${String(expected)}`,
    )
  }

const checks: Readonly<Record<string, Check>> = {
  $ref: (value, expected, { path, find }) => misfits(value, find(expected as string), find, path),
  type: (value, expected, context) =>
    problemUnless(
      [expected].flat().some(type => isOfType(value, type)),
      context,
      `is ${typeOf(value)}, not ${String(expected)}`,
    ),
  const: (value, expected, context) =>
    problemUnless(Bun.deepEquals(value, expected), context, `is not ${JSON.stringify(expected)}`),
  enum: (value, expected, context) =>
    problemUnless(
      (expected as readonly unknown[]).some(one => Bun.deepEquals(one, value)),
      context,
      `${String(value)} is not allowed`,
    ),
  properties: (value, expected, { path, find }) =>
    isObject(value)
      ? Object.entries(expected as Record<string, Schema>).flatMap(([name, schema]) =>
          Object.hasOwn(value, name) ? misfits(value[name], schema, find, `${path}.${name}`) : [],
        )
      : [],
  required: (value, expected, context) =>
    isObject(value)
      ? (expected as readonly string[]).flatMap(name =>
          problemUnless(Object.hasOwn(value, name), context, `lacks "${name}"`),
        )
      : [],
  additionalProperties(value, expected, { path, schema, find }) {
    if (!isObject(value) || expected === true) return []
    const known = (schema.properties ?? {}) as Schema
    return Object.keys(value)
      .filter(name => !Object.hasOwn(known, name))
      .flatMap(name => {
        if (expected === false) return [`${path}: "${name}" has no place`]
        return misfits(value[name], expected as Schema, find, `${path}.${name}`)
      })
  },
  propertyNames: (value, expected, { path, find }) =>
    isObject(value)
      ? Object.keys(value).flatMap(name => misfits(name, expected as Schema, find, `${path}.${name}`))
      : [],
  items: (value, expected, { path, find }) =>
    Array.isArray(value) ? value.flatMap((one, at) => misfits(one, expected as Schema, find, `${path}[${at}]`)) : [],
  prefixItems: (value, expected, { path, find }) =>
    Array.isArray(value)
      ? (expected as readonly Schema[]).flatMap((schema, at) =>
          at < value.length ? misfits(value[at], schema, find, `${path}[${at}]`) : [],
        )
      : [],
  anyOf: (value, expected, context) =>
    problemUnless(
      (expected as readonly Schema[]).some(one => misfits(value, one, context.find).length === 0),
      context,
      'fits none',
    ),
  oneOf: (value, expected, context) =>
    problemUnless(
      (expected as readonly Schema[]).filter(one => misfits(value, one, context.find).length === 0).length === 1,
      context,
      'does not fit exactly one',
    ),
  allOf: (value, expected, { path, find }) =>
    (expected as readonly Schema[]).flatMap(one => misfits(value, one, find, path)),
  not: (value, expected, context) =>
    problemUnless(misfits(value, expected as Schema, context.find).length > 0, context, 'must not be so'),
  pattern: (value, expected, context) =>
    typeof value === 'string'
      ? problemUnless(new RegExp(expected as string, 'u').test(value), context, `${value} is not ${String(expected)}`)
      : [],
  minimum: ofNumber((value, expected) => value >= expected, 'less than'),
  maximum: ofNumber((value, expected) => value <= expected, 'more than'),
  exclusiveMinimum: ofNumber((value, expected) => value > expected, 'not more than'),
  exclusiveMaximum: ofNumber((value, expected) => value < expected, 'not less than'),
  minLength: ofLength((value, expected) => value >= expected, 'less than'),
  maxLength: ofLength((value, expected) => value <= expected, 'more than'),
  minItems: ofLength((value, expected) => value >= expected, 'less than'),
  maxItems: ofLength((value, expected) => value <= expected, 'more than'),
  uniqueItems: (value, expected, context) =>
    problemUnless(
      expected !== true ||
        !Array.isArray(value) ||
        new Set(value.map(one => JSON.stringify(one))).size === value.length,
      context,
      'has an item twice',
    ),
  minProperties: ofProperties((count, expected) => count >= expected, 'less than'),
  maxProperties: ofProperties((count, expected) => count <= expected, 'more than'),
  description: nothing,
  title: nothing,
  default: nothing,
  examples: nothing,
  format: nothing,
  writeOnly: nothing,
  readOnly: nothing,
}
