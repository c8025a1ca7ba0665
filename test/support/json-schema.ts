// Holds a value against a JSON schema (2020-12), as far as our description of the interface uses it. A keyword that is
// not known here is an error: what is not checked must not look as if it were.

export type Schema = Readonly<Record<string, unknown>>

export type FindSchema = (ref: string) => Schema

type Check = (value: unknown, told: unknown, place: Place) => readonly string[]

interface Place {
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

/** What is wrong with it; nothing: it fits. */
export function misfits(value: unknown, schema: Schema, find: FindSchema, path = '$'): readonly string[] {
  return Object.entries(schema).flatMap(([keyword, told]) => {
    if (!Object.hasOwn(checks, keyword)) return [`${path}: the keyword "${keyword}" is not known`]
    return checks[keyword]!(value, told, { path, schema, find })
  })
}

const nothing: Check = () => []
const say = (isRight: boolean, { path }: Place, problem: string): readonly string[] =>
  isRight ? [] : [`${path}: ${problem}`]
const ofNumber =
  (fits: (value: number, told: number) => boolean, word: string): Check =>
  (value, told, place) =>
    typeof value === 'number' ? say(fits(value, told as number), place, `${value} is ${word} ${String(told)}`) : []
const ofLength =
  (fits: (value: number, told: number) => boolean, word: string): Check =>
  (value, told, place) =>
    typeof value === 'string' || Array.isArray(value)
      ? say(fits(value.length, told as number), place, `has ${value.length}, which is ${word} ${String(told)}`)
      : []

const checks: Readonly<Record<string, Check>> = {
  $ref: (value, told, { path, find }) => misfits(value, find(told as string), find, path),
  type: (value, told, place) =>
    say(
      [told].flat().some(type => isOfType(value, type)),
      place,
      `is ${typeOf(value)}, not ${String(told)}`,
    ),
  const: (value, told, place) => say(Bun.deepEquals(value, told), place, `is not ${JSON.stringify(told)}`),
  enum: (value, told, place) =>
    say(
      (told as readonly unknown[]).some(one => Bun.deepEquals(one, value)),
      place,
      `${String(value)} is not allowed`,
    ),
  properties: (value, told, { path, find }) =>
    isObject(value)
      ? Object.entries(told as Record<string, Schema>).flatMap(([name, schema]) =>
          Object.hasOwn(value, name) ? misfits(value[name], schema, find, `${path}.${name}`) : [],
        )
      : [],
  required: (value, told, place) =>
    isObject(value)
      ? (told as readonly string[]).flatMap(name => say(Object.hasOwn(value, name), place, `lacks "${name}"`))
      : [],
  additionalProperties(value, told, { path, schema, find }) {
    if (!isObject(value) || told === true) return []
    const known = (schema.properties ?? {}) as Schema
    return Object.keys(value)
      .filter(name => !Object.hasOwn(known, name))
      .flatMap(name => {
        if (told === false) return [`${path}: "${name}" has no place`]
        return misfits(value[name], told as Schema, find, `${path}.${name}`)
      })
  },
  propertyNames: (value, told, { path, find }) =>
    isObject(value) ? Object.keys(value).flatMap(name => misfits(name, told as Schema, find, `${path}.${name}`)) : [],
  items: (value, told, { path, find }) =>
    Array.isArray(value) ? value.flatMap((one, at) => misfits(one, told as Schema, find, `${path}[${at}]`)) : [],
  prefixItems: (value, told, { path, find }) =>
    Array.isArray(value)
      ? (told as readonly Schema[]).flatMap((schema, at) =>
          at < value.length ? misfits(value[at], schema, find, `${path}[${at}]`) : [],
        )
      : [],
  anyOf: (value, told, place) =>
    say(
      (told as readonly Schema[]).some(one => misfits(value, one, place.find).length === 0),
      place,
      'fits none',
    ),
  oneOf: (value, told, place) =>
    say(
      (told as readonly Schema[]).filter(one => misfits(value, one, place.find).length === 0).length === 1,
      place,
      'does not fit exactly one',
    ),
  allOf: (value, told, { path, find }) => (told as readonly Schema[]).flatMap(one => misfits(value, one, find, path)),
  not: (value, told, place) => say(misfits(value, told as Schema, place.find).length > 0, place, 'must not be so'),
  pattern: (value, told, place) =>
    typeof value === 'string'
      ? say(new RegExp(told as string, 'u').test(value), place, `${value} is not ${String(told)}`)
      : [],
  minimum: ofNumber((value, told) => value >= told, 'less than'),
  maximum: ofNumber((value, told) => value <= told, 'more than'),
  exclusiveMinimum: ofNumber((value, told) => value > told, 'not more than'),
  exclusiveMaximum: ofNumber((value, told) => value < told, 'not less than'),
  minLength: ofLength((value, told) => value >= told, 'less than'),
  maxLength: ofLength((value, told) => value <= told, 'more than'),
  minItems: ofLength((value, told) => value >= told, 'less than'),
  maxItems: ofLength((value, told) => value <= told, 'more than'),
  description: nothing,
  title: nothing,
  default: nothing,
  examples: nothing,
  format: nothing,
  writeOnly: nothing,
  readOnly: nothing,
}
