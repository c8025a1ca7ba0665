// An example of what a schema asks for, made up from it: the fields that must be there, or all. Undefined where no
// example can be made up that fits.

import { textId } from '../../base/ids.ts'
import type { JsonSchema } from './operation.ts'

/** Tried in this order for what is a text, those of the field's own name first. */
const byName: Readonly<Record<string, readonly unknown[]>> = {
  email: ['ann@example.com'],
  password: ['correct horse battery staple'],
  token: ['the-token-that-you-were-given'],
  refreshToken: ['the-token-that-you-were-given'],
  code: ['123456'],
  url: ['https://example.com/hooks/weir'],
  baseUrl: ['https://api.example.com/v1'],
  model: ['demo/echo'],
  qpm: [60],
  pricePerMille: [900],
  amount: ['25.00'],
  cap: ['25.00'],
  creditLimit: ['25.00'],
  startingCredit: ['5.00'],
  threshold: ['10.00'],
  credit: ['5.00'],
  tier: ['pro'],
  note: ['Paid by bank transfer'],
  reason: ['Asked for by the customer'],
  notice: ['Maintenance on Sunday from 02:00 to 03:00 UTC'],
  address: ['203.0.113.7'],
}

const words: readonly string[] = [
  ...['example', 'Example', 'demo/echo', 'ann@example.com', 'https://example.com', '25.00', '2027-01-31T00:00:00Z'],
  ...['203.0.113.0/24', '2027-01-31', '16:30', 'EUR', '123456', 'pro', '1', 'a'.repeat(64)],
]

export type Look = (ref: string) => JsonSchema | undefined

export function sampleOf(schema: JsonSchema, look: Look, name = ''): unknown {
  const { type, $ref, enum: allowed, anyOf, const: fixed } = schema as Told
  if ($ref !== undefined) {
    const found = look($ref)
    return found === undefined ? undefined : sampleOf(found, look, name)
  }
  if (fixed !== undefined) return fixed
  const given = (schema.examples as readonly unknown[] | undefined)?.[0] ?? schema.example ?? schema.default
  if (given !== undefined) return given
  if (allowed !== undefined) return allowed[0]
  const known = (Object.hasOwn(byName, name) ? byName[name]! : []).find(value => fitsPlainly(value, schema))
  if (known !== undefined) return known
  if (anyOf !== undefined) {
    return anyOf.map(one => sampleOf(one, look, name)).find(value => value !== undefined && value !== null)
  }
  return sampleOfType(Array.isArray(type) ? type.find(one => one !== 'null') : type, schema, { look, name })
}

interface Told {
  readonly type?: string | readonly string[]
  readonly $ref?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly JsonSchema[]
  readonly const?: unknown
  readonly pattern?: string
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
}

interface Within {
  readonly look: Look
  readonly name: string
}

function sampleOfType(type: unknown, schema: JsonSchema, { look, name }: Within): unknown {
  const { items, properties = {}, required = [], minimum } = schema as Told
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number') return Math.max(1, minimum ?? 1)
  if (type === 'string') return [...idsFor(schema), ...words].find(word => fitsPlainly(word, schema))
  if (type === 'array') {
    const one = items === undefined ? undefined : sampleOf(items, look, name.replace(/s$/, ''))
    return one === undefined ? [] : [one]
  }
  if (type !== 'object') return undefined
  const sampled = (field: string) => [field, sampleOf(properties[field] ?? {}, look, field)] as const
  if (required.length === 0) {
    // Whoever changes something changes something.
    const [first] = Object.keys(properties)
      .map(sampled)
      .filter(([, value]) => value !== undefined)
    return first === undefined ? {} : Object.fromEntries([first])
  }
  const made = required.map(sampled)
  return made.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(made)
}

function idsFor({ pattern }: Told): readonly string[] {
  const prefix = /^\^([a-z]+)_/.exec(pattern ?? '')?.[1]
  return prefix === undefined ? [] : [textId(prefix, 1)]
}

const formats: Readonly<Record<string, RegExp>> = {
  'email': /@/,
  'uri': /^https:/,
  'date-time': /T.*Z$/,
  'date': /^\d{4}-\d\d-\d\d$/,
  'cidrv4': /\/24$/,
}

function fitsPlainly(value: unknown, schema: JsonSchema): boolean {
  const { type, pattern, format, minLength = 0, maxLength = Infinity, minimum = -Infinity } = schema as Told
  const types = [type ?? []].flat()
  if (typeof value === 'number') return (types.includes('integer') || types.includes('number')) && value >= minimum
  if (typeof value !== 'string' || !types.includes('string')) return false
  if (format !== undefined && !(formats[format]?.test(value) ?? false)) return false
  if (value.length < minLength || value.length > maxLength) return false
  return pattern === undefined || new RegExp(pattern, 'u').test(value)
}
