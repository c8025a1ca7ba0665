// Tests how schemas are written in the subset that Google accepts, and how Google's own form is read.

import { expect, test } from 'bun:test'
import { z } from 'zod'
import type { Json } from '../request/json-type.ts'
import { fromOpenApiSchema, toGoogleSchema } from './schema.ts'

const objectOf = (properties: Json): Json => ({ type: 'object', properties })

test.each<readonly [string, Json, Json]>([
  [
    'a title beside a reference',
    objectOf({ a: { $ref: '#/$defs/a', title: 'A', description: 'd', default: 1 } }),
    objectOf({ a: { $ref: '#/$defs/a', description: 'd', default: 1 } }),
  ],
  [
    'a reference in an allOf of one',
    objectOf({ a: { allOf: [{ $ref: '#/$defs/a' }], title: 'A', description: 'd' } }),
    objectOf({ a: { $ref: '#/$defs/a', description: 'd' } }),
  ],
  [
    'old definitions',
    { $ref: '#/definitions/a', definitions: { a: objectOf({ b: { $ref: '#/definitions/b' } }), b: { const: 'x' } } },
    { $ref: '#/$defs/a', $defs: { a: objectOf({ b: { $ref: '#/$defs/b' } }), b: { enum: ['x'] } } },
  ],
  ['a constant', { type: 'string', const: 'a', $comment: 'c' }, { type: 'string', enum: ['a'] }],
  ['null as a constant', { const: null }, { type: 'null' }],
  ['numbers', { type: 'integer', enum: [101, 201] }, { type: 'integer', enum: [101, 201] }],
  ['both booleans', { enum: [true, false] }, { type: 'boolean' }],
  [
    'values or null',
    { type: ['string', 'null'], enum: ['a', null], description: 'd' },
    { anyOf: [{ type: 'string', enum: ['a'] }, { type: 'null' }], description: 'd' },
  ],
  [
    'limits that allow all',
    { type: 'array', uniqueItems: false, minContains: 0 },
    { type: 'array', uniqueItems: false, minContains: 0 },
  ],
  [
    'limits that Google knows',
    { type: 'array', minItems: 1, maxItems: 2, items: { type: 'number', minimum: 0, maximum: 1 } },
    { type: 'array', minItems: 1, maxItems: 2, items: { type: 'number', minimum: 0, maximum: 1 } },
  ],
  ['a union', { anyOf: [{ const: 1 }, { const: null }] }, { anyOf: [{ enum: [1] }, { type: 'null' }] }],
  [
    'properties with the names of fields',
    objectOf({ pattern: { type: 'string' }, const: {}, $ref: {} }),
    objectOf({ pattern: { type: 'string' }, const: {}, $ref: {} }),
  ],
])('%s is written in full', (_name, schema, expected) => {
  expect(toGoogleSchema(schema)).toEqual({ schema: expected, isWeaker: false })
})

test.each<readonly [string, Json, Json]>([
  [
    'a boolean constant',
    { type: 'boolean', const: true, description: 'd' },
    { type: 'boolean', description: 'd\n{enum: [true]}' },
  ],
  [
    'an object as a constant',
    { type: 'object', const: { a: 1 } },
    { type: 'object', description: '{enum: [{"a":1}]}' },
  ],
  [
    'values beside alternatives',
    { enum: ['a', null], anyOf: [{ type: 'string' }] },
    { anyOf: [{ type: 'string' }], description: '{enum: ["a",null]}' },
  ],
  ['a limit beside a reference', { $ref: '#/$defs/a', maxItems: 1 }, { $ref: '#/$defs/a' }],
  ['a pattern', objectOf({ a: { type: 'string', pattern: '^a' } }), objectOf({ a: { type: 'string', pattern: '^a' } })],
  ['a limit of zod', z.toJSONSchema(z.number().positive()) as Json, { type: 'number', exclusiveMinimum: 0 }],
  ['an intersection', { allOf: [{ const: 'a' }, {}] }, { allOf: [{ enum: ['a'] }, {}] }],
  [
    'no other properties',
    { type: 'object', unevaluatedProperties: false },
    { type: 'object', unevaluatedProperties: false },
  ],
])('%s does not bind the model', (_name, schema, expected) => {
  expect(toGoogleSchema(schema)).toEqual({ schema: expected, isWeaker: true })
})

test.each<readonly [string, Json, Json]>([
  ['integers', { type: 'INTEGER', format: 'enum', enum: ['101', '-2'] }, { type: 'integer', enum: [101, -2] }],
  ['numbers', { enum: ['0.5', '1e3'], type: 'NUMBER' }, { type: 'number', enum: [0.5, 1000] }],
  ['booleans', { type: 'BOOLEAN', enum: ['true', 'false'] }, { type: 'boolean', enum: [true, false] }],
  [
    'integers or null',
    { type: 'INTEGER', nullable: true, enum: ['1'] },
    { type: ['integer', 'null'], enum: [1, null] },
  ],
  [
    'integers in a list',
    { type: 'ARRAY', items: { type: 'INTEGER', enum: ['1'] } },
    { type: 'array', items: { type: 'integer', enum: [1] } },
  ],
  ['texts that look like numbers', { type: 'STRING', enum: ['1', 'true'] }, { type: 'string', enum: ['1', 'true'] }],
  ['texts of no type', { enum: ['1'] }, { enum: ['1'] }],
  ['texts that are no integers', { type: 'INTEGER', enum: ['one', ''] }, { type: 'integer', enum: ['one', ''] }],
])('listed values get the type that the schema has: %s', (_name, schema, expected) => {
  expect(fromOpenApiSchema(schema)).toEqual(expected)
})
