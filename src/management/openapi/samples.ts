// Generates an example for a schema: its required fields, or its first field if none is required. Undefined if no
// example can be generated.

import { textId } from '../../base/ids.ts'
import type { JsonSchema } from './operation.ts'

/** Example values by the name of the field. They are tried first. */
const byName: Readonly<Record<string, readonly unknown[]>> = {
  email: ['ann@example.com'],
  password: ['correct horse battery staple'],
  token: ['the-token-that-you-were-given'],
  refreshToken: ['the-token-that-you-were-given'],
  code: ['123456'],
  url: ['https://example.com/hooks/weir'],
  baseUrl: ['https://api.example.com/v1'],
  proxy: ['http://name:password@proxy.example.com:3128'],
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

/** Example strings for all other fields, tried in this order. */
const words: readonly string[] = [
  ...['example', 'Example', 'demo/echo', 'ann@example.com', 'https://example.com', '25.00', '2027-01-31T00:00:00Z'],
  ...['203.0.113.0/24', '2027-01-31', '16:30', 'EUR', '123456', 'pro', '1', 'a'.repeat(64)],
]

export type SchemaLookup = (ref: string) => JsonSchema | undefined

export function sampleOf(schema: JsonSchema, look: SchemaLookup, name = ''): unknown {
  const { type, $ref, enum: allowed, anyOf, const: fixed } = schema as KnownSchema
  if ($ref !== undefined) {
    const found = look($ref)
    return found === undefined ? undefined : sampleOf(found, look, name)
  }
  if (fixed !== undefined) return fixed
  const example = (schema.examples as readonly unknown[] | undefined)?.[0] ?? schema.example ?? schema.default
  if (example !== undefined) return example
  if (allowed !== undefined) return allowed[0]
  const known = (Object.hasOwn(byName, name) ? byName[name]! : []).find(value => matchesSchema(value, schema))
  if (known !== undefined) return known
  if (anyOf !== undefined) {
    return anyOf.map(choice => sampleOf(choice, look, name)).find(value => value !== undefined && value !== null)
  }
  return sampleOfType(Array.isArray(type) ? type.find(name => name !== 'null') : type, schema, look, name)
}

interface KnownSchema {
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

function sampleOfType(type: unknown, schema: JsonSchema, look: SchemaLookup, name: string): unknown {
  const { items, properties = {}, required = [], minimum } = schema as KnownSchema
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number') return Math.max(1, minimum ?? 1)
  if (type === 'string') return [...idsFor(schema), ...words].find(word => matchesSchema(word, schema))
  if (type === 'array') {
    const item = items === undefined ? undefined : sampleOf(items, look, name.replace(/s$/, ''))
    return item === undefined ? [] : [item]
  }
  if (type !== 'object') return undefined
  const sampled = (field: string) => [field, sampleOf(properties[field] ?? {}, look, field)] as const
  if (required.length === 0) {
    // A change must have at least one field.
    const [first] = Object.keys(properties)
      .map(sampled)
      .filter(([, value]) => value !== undefined)
    return first === undefined ? {} : Object.fromEntries([first])
  }
  const samples = required.map(sampled)
  return samples.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(samples)
}

function idsFor({ pattern }: KnownSchema): readonly string[] {
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

function matchesSchema(value: unknown, schema: JsonSchema): boolean {
  const { type, pattern, format, minLength = 0, maxLength = Infinity, minimum = -Infinity } = schema as KnownSchema
  const types = [type ?? []].flat()
  if (typeof value === 'number') return (types.includes('integer') || types.includes('number')) && value >= minimum
  if (typeof value !== 'string' || !types.includes('string')) return false
  if (format !== undefined && !(formats[format]?.test(value) ?? false)) return false
  if (value.length < minLength || value.length > maxLength) return false
  return pattern === undefined || new RegExp(pattern, 'u').test(value)
}
