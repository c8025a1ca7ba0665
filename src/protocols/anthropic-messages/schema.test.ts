// Tests which schemas this dialect's providers can hold a model to, and how those are written.

import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import type { Json } from '../request/json-type.ts'
import { toSupportedSchema } from './schema.ts'

const text = { type: 'string' }
const objectOf = (properties: Json, more: Json = {}): Json => ({ type: 'object', properties, ...more })
const closed = (properties: Json, more: Json = {}): Json => ({
  ...objectOf(properties, more),
  additionalProperties: false,
})
const fromZod = (schema: z.ZodType): Json => z.toJSONSchema(schema) as Json

describe('a schema is converted:', () => {
  const shapes = z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })])
  const kind = (only: string): Json => closed({ kind: { type: 'string', const: only } }, { required: ['kind'] })
  const point = { $defs: { point: objectOf({ x: text }) } }
  const closedPoint = { $defs: { point: closed({ x: text }) } }

  test.each<readonly [string, Json, Json]>([
    ['an object is closed', objectOf({ a: text }), closed({ a: text })],
    ['an object without properties stays closed', { type: 'object', additionalProperties: false }, closed({})],
    [
      'an object that may be null',
      { ...objectOf({}), type: ['object', 'null'] },
      { ...closed({}), type: ['object', 'null'] },
    ],
    ['a type that is left out', { properties: { a: { items: text } } }, closed({ a: { type: 'array', items: text } })],
    [
      'oneOf of zod',
      fromZod(z.object({ s: shapes })),
      closed({ s: { anyOf: [kind('a'), kind('b')] } }, { required: ['s'] }),
    ],
    [
      'a type around alternatives',
      { type: 'string', anyOf: [{ format: 'uri' }, { const: 'x' }] },
      { anyOf: [{ type: 'string', format: 'uri' }, { const: 'x' }] },
    ],
    ['a list with an item', { type: 'array', items: text, minItems: 1 }, { type: 'array', items: text, minItems: 1 }],
    ['a list of anything', { type: 'array', items: {} }, { type: 'array' }],
    ['values of several types', { type: ['string', 'null'], enum: ['a', null] }, { enum: ['a', null] }],
    ['values of which some fit the type', { type: 'string', enum: ['a', null] }, { enum: ['a', null] }],
    ['values that the type excludes', { type: 'integer', enum: ['1'] }, { type: 'integer', enum: ['1'] }],
    [
      'a value that all types exclude',
      { type: ['null', 'integer'], const: 'a' },
      { type: ['null', 'integer'], const: 'a' },
    ],
    ['values of one type', { type: 'integer', enum: [1, 2] }, { type: 'integer', enum: [1, 2] }],
    [
      'a reference',
      { ...objectOf({ a: { $ref: '#/$defs/point', title: 'A' } }), ...point },
      { ...closed({ a: { $ref: '#/$defs/point' } }), ...closedPoint },
    ],
    [
      'a description beside a reference',
      { ...objectOf({ a: { allOf: [{ $ref: '#/$defs/point' }], description: 'where' } }), ...point },
      { ...closed({ a: { $ref: '#/$defs/point' } }), description: '{a: "where"}', ...closedPoint },
    ],
    [
      'a reference with an escaped name',
      { $ref: '#/definitions/a~1b%20c', definitions: { 'a/b c': text } },
      { $ref: '#/definitions/a~1b%20c', definitions: { 'a/b c': text } },
    ],
    [
      'words for readers',
      { ...text, $schema: 's', $comment: 'c', examples: ['x'] },
      { ...text, description: '{examples: ["x"]}' },
    ],
  ])('%s', (_name, schema, expected) => {
    expect(toSupportedSchema(schema)).toEqual({ schema: expected, isWeaker: false })
  })

  test.each<readonly [string, Json, Json]>([
    ['a limit', { ...text, description: 'd', maxLength: 3 }, { ...text, description: 'd\n{maxLength: 3}' }],
    [
      'more than one item',
      { type: 'array', items: text, minItems: 2 },
      { type: 'array', items: text, description: '{minItems: 2}' },
    ],
    [
      'a tuple',
      { type: 'array', prefixItems: [text] },
      { type: 'array', description: '{prefixItems: [{"type":"string"}]}' },
    ],
    [
      'alternatives beside properties',
      { ...objectOf({ a: text }), anyOf: [{ required: ['a'] }] },
      { ...closed({ a: text }), description: '{anyOf: [{"required":["a"]}]}' },
    ],
    ['a value that is a list', { type: 'array', enum: [[1]] }, { type: 'array', description: '{enum: [[1]]}' }],
    [
      'a limit beside a reference',
      { $ref: '#/$defs/point', minProperties: 1, ...point },
      { $ref: '#/$defs/point', ...closedPoint },
    ],
  ])('%s only describes', (_name, schema, expected) => {
    expect(toSupportedSchema(schema)).toEqual({ schema: expected, isWeaker: true })
  })
})

describe('a schema cannot be converted:', () => {
  const tree = z.object({
    get children() {
      return z.array(tree)
    },
  })
  const twoDefinitions = {
    a: objectOf({ b: { $ref: '#/$defs/b' } }),
    b: { type: 'array', items: { $ref: '#/$defs/a' } },
  }
  const nested = (depth: number): Json => (depth === 0 ? text : { type: 'array', items: nested(depth - 1) })

  test.each<readonly [string, Json]>([
    ['a map of numbers', { type: 'object', additionalProperties: { type: 'number' } }],
    ['a map of zod', fromZod(z.record(z.string(), z.number()))],
    ['an open object of zod', fromZod(z.looseObject({ a: z.string() }))],
    ['additional properties', objectOf({ a: text }, { additionalProperties: true })],
    ['properties by a pattern', objectOf({}, { patternProperties: { '^x': text } })],
    ['an object about which nothing is said', { type: 'object' }],
    ['a required property that is not described', objectOf({ a: text }, { required: ['b'] })],
    ['recursion of zod', fromZod(tree)],
    ['recursion through two definitions', { ...objectOf({ a: { $ref: '#/$defs/a' } }), $defs: twoDefinitions }],
    ['a reference to another document', { $ref: 'https://x.example/schema' }],
    ['a reference to nothing', objectOf({ a: { $ref: '#/$defs/a' } })],
    ['anything', {}],
    ['an intersection', { allOf: [objectOf({ a: text }), objectOf({ b: text })] }],
    ['too many levels', nested(65)],
  ])('%s', (_name, schema) => {
    expect(toSupportedSchema(schema)).toBeUndefined()
    expect(
      toSupportedSchema(
        objectOf(
          { inner: { type: 'array', items: { anyOf: [text, schema] } } },
          schema.$defs === undefined ? {} : { $defs: schema.$defs },
        ),
      ),
    ).toBeUndefined()
  })

  test('a chain of references is no recursion, however long', () => {
    const names = Array.from({ length: 5_000 }, (_, at) => `d${at}`)
    const refer = (name: string | undefined): Json => (name === undefined ? text : { $ref: `#/$defs/${name}` })
    const definitions = Object.fromEntries(
      names.map((name, at) => [name, objectOf({ a: refer(names[at + 1]), b: refer(names[at + 1]) })]),
    )
    expect(toSupportedSchema({ $ref: '#/$defs/d0', $defs: definitions })?.isWeaker).toBe(false)
    const last = objectOf({ a: refer('d0') })
    expect(toSupportedSchema({ $ref: '#/$defs/d0', $defs: { ...definitions, d4999: last } })).toBeUndefined()
  })
})
