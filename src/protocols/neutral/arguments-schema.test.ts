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
  [
    'an object with null for alternatives',
    { ...objectOf({ a: text }), anyOf: null, $ref: null },
    objectOf({ a: text }),
  ],
  [
    'an object with no alternatives',
    { ...objectOf({ a: text }), allOf: [], oneOf: [], enum: [] },
    objectOf({ a: text }),
  ],
  [
    'a reference to an object with no alternatives',
    { $ref: '#/$defs/a', anyOf: [], $defs: { a: { ...objectOf({ b: text }), anyOf: null } } },
    { ...objectOf({ b: text }), $defs: { a: { ...objectOf({ b: text }), anyOf: null } } },
  ],
  [
    'a reference to a reference',
    { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b', title: 'A' }, b: objectOf({ c: text }, ['c']) } },
    {
      ...objectOf({ c: text }, ['c']),
      title: 'A',
      $defs: { a: { $ref: '#/$defs/b', title: 'A' }, b: objectOf({ c: text }, ['c']) },
    },
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
      'definitions that refer to definitions',
      { anyOf: [{ $ref: '#/$defs/c' }, b], $defs: { ...$defs, c: { $ref: '#/$defs/a' } } },
      { ...objectOf({ kind, x: text, y: number }, ['kind']), $defs: { ...$defs, c: { $ref: '#/$defs/a' } } },
    ],
    [
      'a reference to alternatives',
      { $ref: '#/$defs/c', $defs: { c: { anyOf: [a, b] } } },
      { ...objectOf({ kind, x: text, y: number }, ['kind']), $defs: { c: { anyOf: [a, b] } } },
    ],
    [
      'properties beside a reference',
      { $ref: '#/$defs/a', properties: { note: text }, required: ['note'], $defs },
      { ...objectOf({ note: text, ...(a.properties as Json) }, ['note', 'kind', 'x']), $defs },
    ],
    [
      'properties and parts beside the reference of a branch',
      { anyOf: [{ $ref: '#/$defs/a', required: ['z'], allOf: [objectOf({ z: text })] }], $defs },
      { ...objectOf({ z: text, ...(a.properties as Json) }, ['z', 'kind', 'x']), $defs },
    ],
    [
      'alternatives beside a reference to alternatives',
      { $ref: '#/$defs/c', anyOf: [objectOf({ z: text }, ['z'])], $defs: { c: { anyOf: [a, b] } } },
      { ...objectOf({ kind, x: text, y: number, z: text }, ['kind', 'z']), $defs: { c: { anyOf: [a, b] } } },
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
      { ...objectOf(a.properties as Json), additionalProperties: true },
    ],
    ['an unknown root', { $ref: '#' }, { ...objectOf({}), additionalProperties: true }],
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

  describe('which is open if something in it is not known:', () => {
    const chainOf = (length: number): Json =>
      Object.fromEntries(
        Array.from({ length }, (_, at) => [`d${at}`, at === length - 1 ? a : { $ref: `#/$defs/d${at + 1}` }]),
      )
    const nested = (levels: number): Json => (levels === 0 ? a : { anyOf: [nested(levels - 1)] })

    test.each<readonly [string, Json]>([
      ['a definition that is missing', { $ref: '#/$defs/c' }],
      ['a reference to a missing one', { $ref: '#/$defs/c', $defs: { c: { $ref: '#/$defs/d' } } }],
      ['a part', { allOf: [a, { $ref: '#/$defs/c' }] }],
      ['a map', { anyOf: [a, { type: 'object', additionalProperties: number }] }],
      ['a map by its names', { allOf: [a, { patternProperties: { '^x-': text } }] }],
      ['a circle', { $ref: '#/$defs/c', $defs: { c: { $ref: '#/$defs/d' }, d: { $ref: '#/$defs/c' } } }],
      ['an alternative that is a circle', { anyOf: [{ $ref: '#/$defs/c' }], $defs: { c: { $ref: '#/$defs/c' } } }],
      ['too many references', { $ref: '#/$defs/d0', $defs: chainOf(10) }],
      ['too many levels', nested(9)],
    ])('%s', (_name, schema) => {
      const closed = { ...schema, additionalProperties: false, unevaluatedProperties: false }
      const { schema: written, isWeaker } = toArgumentsSchema(closed)
      expect([written.additionalProperties, written.unevaluatedProperties, isWeaker]).toEqual([true, undefined, true])
    })

    test.each<readonly [string, Json]>([
      ['a definition that is used twice', { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }], $defs }],
      ['closed alternatives', { anyOf: [{ ...a, additionalProperties: false }], patternProperties: {} }],
      ['as many references as are followed', { $ref: '#/$defs/d0', oneOf: [{}], $defs: chainOf(8) }],
      ['as many levels as are followed', nested(8)],
    ])('but not %s', (_name, schema) => {
      const { schema: written } = toArgumentsSchema({ ...schema, additionalProperties: false })
      expect(written).toMatchObject({ properties: a.properties as Json, additionalProperties: false })
    })
  })

  test('many references to one definition cost no more than one', async () => {
    const names = Array.from({ length: 20_000 }, (_, at) => `p${at}`)
    const large = objectOf(Object.fromEntries(names.map(name => [name, text])), names)
    const references = names.map(() => ({ anyOf: [{ $ref: '#/$defs/large' }, { $ref: '#/$defs/large' }] }))
    await expectCheap(2_000, () => toArgumentsSchema({ allOf: references, $defs: { large } }))
  })
})
