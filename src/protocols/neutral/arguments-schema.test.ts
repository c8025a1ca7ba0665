// Tests how schemas of arguments get an object at their root, which allows whatever the caller's schema allows.

import { describe, expect, test } from 'bun:test'
import { expectCheap } from '../../../test/support/cpu.ts'
import type { Json } from '../request/json-type.ts'
import { toArgumentsSchema } from './arguments-schema.ts'

const text = { type: 'string' }
const number = { type: 'number' }
const objectOf = (properties: Json, required?: readonly string[]): Json => ({
  type: 'object',
  properties,
  ...(required && { required }),
})

test.each<readonly [string, Json]>([
  ['properties', objectOf({ a: text }, ['a'])],
  ['no properties', objectOf({})],
  ['alternatives inside', objectOf({ a: { anyOf: [text, { type: 'null' }] }, anyOf: text, enum: text, $ref: text })],
  ['references inside', { ...objectOf({ a: { $ref: '#/$defs/a' } }), $defs: { a: { oneOf: [text, number] } } }],
  [
    'fields without a rule',
    { ...objectOf({ a: text }), $schema: 's', minProperties: 1, if: {}, additionalProperties: {} },
  ],
])('an object with %s is the same and not copied', (_name, schema) => {
  const { schema: written, isWeaker } = toArgumentsSchema(schema)
  expect(written).toBe(schema)
  expect(isWeaker).toBe(false)
})

test.each<readonly [string, Json, Json]>([
  ['nothing', {}, objectOf({})],
  ['an object without properties', { type: 'object', description: 'd' }, { ...objectOf({}), description: 'd' }],
  ['null as properties', { type: 'object', properties: null }, objectOf({})],
  ['properties without a type', { properties: { a: text }, required: ['a'] }, objectOf({ a: text }, ['a'])],
  ['an object that may be null', { ...objectOf({ a: text }), type: ['object', 'null'] }, objectOf({ a: text })],
  [
    'a reference',
    { $ref: '#/definitions/a', $schema: 's', definitions: { a: objectOf({ b: text }, ['b']) } },
    { ...objectOf({ b: text }, ['b']), $schema: 's', definitions: { a: objectOf({ b: text }, ['b']) } },
  ],
])('%s becomes an object that means the same', (_name, schema, expected) => {
  expect(toArgumentsSchema(schema)).toEqual({ schema: expected, isWeaker: false })
})

describe('alternatives at the root become one object:', () => {
  const a = objectOf({ kind: { const: 'a' }, x: text }, ['kind', 'x'])
  const b = objectOf({ kind: { const: 'b' }, x: text, y: number }, ['kind'])
  const kind = { anyOf: [{ const: 'a' }, { const: 'b' }] }
  const $defs = { a, b }

  test.each<readonly [string, Json, Json]>([
    ['anyOf requires what all require', { anyOf: [a, b] }, objectOf({ kind, x: text, y: number }, ['kind'])],
    ['so does oneOf', { type: 'object', oneOf: [a, b] }, objectOf({ kind, x: text, y: number }, ['kind'])],
    ['allOf requires what any requires', { allOf: [a, b] }, objectOf({ kind, x: text, y: number }, ['kind', 'x'])],
    [
      'the root keeps its fields',
      { ...objectOf({ z: text }, ['z']), description: 'd', additionalProperties: false, anyOf: [a, b] },
      {
        ...objectOf({ z: text, kind, x: text, y: number }, ['z', 'kind']),
        description: 'd',
        additionalProperties: false,
      },
    ],
    [
      'branches that only require',
      { ...objectOf({ x: text, y: text }), anyOf: [{ required: ['x'] }, { required: ['y'] }] },
      objectOf({ x: text, y: text }),
    ],
    [
      'definitions',
      { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }], $defs },
      { ...objectOf({ kind, x: text, y: number }, ['kind']), $defs },
    ],
    [
      'a reference to alternatives',
      { $ref: '#/$defs/c', $defs: { c: { anyOf: [a, b] } } },
      { ...objectOf({ kind, x: text, y: number }, ['kind']), $defs: { c: { anyOf: [a, b] } } },
    ],
    [
      'alternatives of a part',
      { allOf: [objectOf({ z: text }, ['z']), { anyOf: [a, b] }] },
      objectOf({ z: text, kind, x: text, y: number }, ['z', 'kind']),
    ],
    ['a branch that is no object', { anyOf: [a, text, { type: 'null' }, true] }, a],
    ['a branch that may be null', { anyOf: [{ ...a, type: ['object', 'null'] }] }, a],
    [
      'an unknown branch may require nothing',
      { anyOf: [a, { $ref: 'https://x.example/s' }] },
      objectOf(a.properties as Json),
    ],
    ['an unknown root', { $ref: '#' }, objectOf({})],
    ['listed values', { ...a, enum: [{}], not: { required: ['y'] } }, a],
    [
      'recursion',
      { anyOf: [{ $ref: '#/$defs/r' }], $defs: { r: { anyOf: [a, { $ref: '#/$defs/r' }] } } },
      {
        ...objectOf(a.properties as Json),
        $defs: { r: { anyOf: [a, { $ref: '#/$defs/r' }] } },
      },
    ],
    ['no list', { anyOf: {}, required: 'x' }, objectOf({})],
    [
      'names that objects have by themselves',
      { allOf: [objectOf(JSON.parse('{"__proto__": {}}') as Json)] },
      objectOf(JSON.parse('{"__proto__": {}}') as Json),
    ],
  ])('%s', (_name, schema, expected) => {
    expect(toArgumentsSchema(schema)).toEqual({ schema: expected, isWeaker: true })
  })

  test('many references to one definition cost no more than one', async () => {
    const names = Array.from({ length: 20_000 }, (_, at) => `p${at}`)
    const large = objectOf(Object.fromEntries(names.map(name => [name, text])), names)
    const references = names.map(() => ({ anyOf: [{ $ref: '#/$defs/large' }, { $ref: '#/$defs/large' }] }))
    await expectCheap(2_000, () => toArgumentsSchema({ allOf: references, $defs: { large } }))
  })
})
