// Tests what the root of a schema describes.

import { expect, test } from 'bun:test'
import type { Json } from '../request/json-type.ts'
import { mayBeObject, toObjectSchema } from './root-object.ts'

const text = { type: 'string' }
const objectOf = (properties: Json, more: Json = {}): Json => ({ type: 'object', properties, ...more })

test.each<readonly [string, Json, Json | undefined]>([
  ['an object', { type: 'object' }, { type: 'object' }],
  ['a definition', { $ref: '#/$defs/a', $defs: { a: objectOf({}) } }, { ...objectOf({}), $defs: { a: objectOf({}) } }],
  ['a list', { type: 'array' }, undefined],
  ['alternatives', { type: 'object', anyOf: [{ type: 'object' }] }, undefined],
  ['a reference to itself', { $ref: '#' }, undefined],
  [
    'a definition and further properties',
    { $ref: '#/$defs/a', properties: { b: text }, $defs: { a: objectOf({ c: text }) } },
    undefined,
  ],
])('the schema of an object from %s', (_name, schema, expected) => {
  expect(toObjectSchema(schema)).toEqual(expected)
})

test.each<readonly [Json, boolean]>([
  [{ type: 'object' }, true],
  [{ type: ['object', 'null'] }, true],
  [{ anyOf: [{ type: 'object' }] }, true],
  [{ properties: {} }, true],
  [{ type: 'array' }, false],
  [{ items: text }, false],
  [{ type: 'string', enum: ['a'] }, false],
])('an object may fit %j: %s', (schema, expected) => {
  expect(mayBeObject(schema)).toBe(expected)
})
