// Tests which schemas OpenAI's dialects can hold a model to.

import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import type { Json } from '../request/json-type.ts'
import { toStrictSchema, writeStrictness } from './strict-schema.ts'

const text = { type: 'string' }
const closed = (properties: Json, more: Json = {}): Json => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
})
const fromZod = (schema: z.ZodType): Json => z.toJSONSchema(schema) as Json

test.each<readonly [string, Json]>([
  ['texts and numbers', closed({ a: { ...text, description: 'd', title: 'A' }, b: { type: ['integer', 'null'] } })],
  ['limits', closed({ a: { ...text, pattern: '^a(?:b)$' }, b: { type: 'number', minimum: 0, multipleOf: 2 } })],
  ['a format', closed({ a: { ...text, format: 'date-time' } })],
  ['listed values', closed({ a: { type: 'integer', enum: [1, 2] }, b: { ...text, const: 'b' } })],
  ['a list', closed({ a: { type: 'array', items: closed({ b: text }), minItems: 1, maxItems: 2 } })],
  ['alternatives', closed({ a: { anyOf: [closed({ b: text }), { type: 'null' }], description: 'd' } })],
  ['definitions', closed({ a: { $ref: '#/$defs/b' } }, { $defs: { b: closed({ c: text }) } })],
  ['old definitions', closed({ a: { $ref: '#/definitions/b' } }, { definitions: { b: text } })],
  ['recursion', closed({ a: { type: 'array', items: { $ref: '#' } } })],
  ['no properties', closed({})],
  ['properties with the names of fields', closed({ not: text, $ref: text, default: text })],
])('OpenAI takes a schema with %s', (_name, schema) => {
  expect(toStrictSchema(schema)).toEqual(schema)
})

test.each<readonly [string, Json, Json]>([
  [
    'objects are closed',
    { type: 'object', properties: { a: { type: 'object', properties: {} } }, required: ['a'] },
    closed({ a: closed({}) }),
  ],
  [
    'what restricts nothing is left out',
    closed(
      { a: { ...text, default: 'x', examples: ['x'] }, b: { $ref: '#/$defs/c', title: 'B' } },
      { $schema: 's', $defs: { c: text } },
    ),
    closed({ a: text, b: { $ref: '#/$defs/c' } }, { $defs: { c: text } }),
  ],
  [
    "Google's formats of numbers",
    closed({ a: { type: 'integer', format: 'int32' } }),
    closed({ a: { type: 'integer' } }),
  ],
  ['a schema of zod', fromZod(z.object({ a: z.string().nullable() })), closed({ a: { type: ['string', 'null'] } })],
])('%s', (_name, schema, expected) => {
  expect(toStrictSchema(schema)).toEqual(expected)
})

describe('OpenAI refuses', () => {
  const nested = (levels: number): Json => (levels === 0 ? text : closed({ a: nested(levels - 1) }))
  const lists = (depth: number): Json => (depth === 0 ? text : { type: 'array', items: lists(depth - 1) })
  const many = (count: number, value: unknown = text): Json =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, value]))

  test.each<readonly [string, Json]>([
    ['an optional property', closed({ a: text, b: text }, { required: ['a'] })],
    ['a required property that is not described', closed({ a: text }, { required: ['a', 'b'] })],
    ['a map', closed({ a: { type: 'object', additionalProperties: text } })],
    ['an object about which nothing is said', closed({ a: { type: 'object' } })],
    ['other properties', closed({ a: text }, { additionalProperties: true })],
    ['an answer that is no object', { type: 'array', items: text }],
    ['an answer that may be null', closed({ a: text }, { type: ['object', 'null'] })],
    ['alternatives at the root', { anyOf: [closed({}), closed({ a: text })] }],
    ['a reference at the root', { $ref: '#/$defs/a', $defs: { a: closed({}) } }],
    ['a value of any type', closed({ a: {} })],
    ['values without a type', closed({ a: { enum: ['x'] } })],
    ['an unknown type', closed({ a: { type: 'text' } })],
    ['a type beside alternatives', closed({ a: { type: 'string', anyOf: [text] } })],
    ['a list of anything', closed({ a: { type: 'array' } })],
    ['a tuple', closed({ a: { type: 'array', prefixItems: [text] } })],
    ['oneOf', closed({ a: { oneOf: [text] } })],
    ['an intersection', closed({ a: { allOf: [text] } })],
    ['a negation', closed({ a: { ...text, not: { const: 'a' } } })],
    ['a limit of the length', closed({ a: { ...text, maxLength: 3 } })],
    ['a pattern that looks ahead', closed({ a: { ...text, pattern: '^(?!a)' } })],
    ['an unknown format', closed({ a: { ...text, format: 'uri' } })],
    ['an object as a value', closed({ a: closed({}, { const: {} }) })],
    [
      'a description beside a reference',
      closed({ a: { $ref: '#/$defs/b', description: 'd' } }, { $defs: { b: text } }),
    ],
    ['a reference to nothing', closed({ a: { $ref: '#/$defs/b' } })],
    ['a reference to another document', closed({ a: { $ref: 'https://x.example/schema' } })],
    ['definitions inside', closed({ a: { ...text, $defs: {} } })],
    ['more than ten levels', nested(11)],
    ['lists in too many lists', closed({ a: lists(65) })],
    ['too many properties', closed(many(5_001))],
    ['too many values', closed({ a: { type: 'integer', enum: Array.from({ length: 1_001 }, (_, at) => at) } })],
    ['names that are too long', closed({ ['a'.repeat(120_001)]: text })],
  ])('%s', (_name, schema) => {
    expect(toStrictSchema(schema)).toBeUndefined()
  })

  test('no schema at the limits', () => {
    expect(toStrictSchema(nested(10))).toEqual(nested(10))
    expect(toStrictSchema(closed(many(5_000)))).toBeDefined()
  })
})

describe('a schema that OpenAI is not asked to hold the model to', () => {
  const write = (schema: Json) =>
    writeStrictness({ schema }, { followsStrictRules: undefined, knowsStrict: true }).schema
  const list = { type: 'array' }
  const anything = { type: 'array', items: {} }

  test('says of every list what is in it', () => {
    const schema = {
      ...closed({ a: list, b: { type: ['array', 'null'] }, c: { type: 'array', items: list } }),
      additionalProperties: list,
      $defs: { d: { anyOf: [text, list] } },
    }
    expect(write(schema)).toEqual({
      ...closed({ a: anything, b: { type: ['array', 'null'], items: {} }, c: { type: 'array', items: anything } }),
      additionalProperties: anything,
      $defs: { d: { anyOf: [text, anything] } },
    })
  })

  test('is not copied if it does so', () => {
    const tuple = { type: 'array', prefixItems: [text] }
    const schema = closed({ a: anything, tuple, type: text, listed: { enum: [list], default: list, examples: [list] } })
    expect(write(schema)).toBe(schema)
  })
})
