// Every schema of the OpenAPI document says what it describes: a generated client has a type for every value. A value that
// is free-form by nature is an exception with a reason.

import { describe, expect, test } from 'bun:test'
import type { Schema } from '../support/json-schema.ts'
import { document } from './described.ts'

interface Exception {
  readonly why: string
  is(path: string, schema: Schema): boolean
}

/** Where a schema may say no more than that it is an object or any value. */
const freeForm: readonly Exception[] = [
  {
    why: 'the value of a field of a request in any dialect, which a channel sets or "explain" gets',
    is: path => path === '#/components/schemas/JsonValue',
  },
  {
    why: 'tools and parts of messages belong to the dialect; the gateway passes on fields that it does not know',
    is: path => /^#\/components\/schemas\/(\w+Request|ChatMessage)\//.test(path),
  },
  {
    why: 'the answer of an upstream belongs to the dialect of the call',
    is: (_path, { description }) => String(description).startsWith('The answer in the dialect '),
  },
]

type Found = readonly [path: string, schema: Schema]

/** The schemas in a schema. */
function inner(schema: Schema): readonly Found[] {
  const one = (name: string): readonly Found[] =>
    typeof schema[name] === 'object' ? [[name, schema[name] as Schema]] : []
  const several = (name: string): readonly Found[] =>
    Object.entries((schema[name] ?? {}) as Record<string, Schema>).map(([key, value]) => [`${name}/${key}`, value])
  return [
    ...['properties', 'anyOf', 'oneOf', 'allOf', 'prefixItems'].flatMap(several),
    ...['items', 'additionalProperties', 'not'].flatMap(one),
  ]
}

function* withInner([path, schema]: Found): Generator<Found> {
  yield [path, schema]
  for (const [name, one] of inner(schema)) yield* withInner([`${path}/${name}`, one])
}

/** The outermost schemas below a part of the document that is not a schema. */
function* outer(value: unknown, path: string): Generator<Found> {
  if (typeof value !== 'object' || value === null) return
  for (const [name, one] of Object.entries(value)) {
    if (name === 'schema') yield [`${path}/schema`, one as Schema]
    else if (name !== 'examples') yield* outer(one, `${path}/${name}`)
  }
}

const { schemas, ...otherComponents } = document.components
const named = Object.entries(schemas!).map(
  ([name, schema]): Found => [`#/components/schemas/${name}`, schema as Schema],
)
const all = [...named, ...outer(document.paths, '#/paths'), ...outer(otherComponents, '#/components')].flatMap(
  found => [...withInner(found)],
)

/** What is missing; undefined if the schema says what the value is. */
function missing(schema: Schema): string | undefined {
  const { type, properties = {}, additionalProperties, items, prefixItems } = schema
  const types = [type ?? []].flat()
  if (types.length === 0) {
    const isTyped = ['$ref', 'const', 'enum', 'anyOf', 'oneOf', 'allOf'].some(keyword => keyword in schema)
    return isTyped ? undefined : 'no type'
  }
  if (types.includes('array') && items === undefined && prefixItems === undefined) return 'no type of items'
  const isOpen = additionalProperties === undefined || additionalProperties === true
  const hasNoFields = Object.keys(properties as object).length === 0
  return types.includes('object') && isOpen && hasNoFields ? 'no fields' : undefined
}

const problems = all.flatMap(([path, schema]) => {
  const problem = missing(schema)
  return problem === undefined ? [] : [{ path, schema, problem }]
})

describe('the schemas of the document', () => {
  test('are all looked at', () => {
    expect(all.length).toBeGreaterThan(3_000)
    expect(all.some(([path]) => path === '#/components/schemas/Channel/properties/parameters')).toBe(true)
  })

  test('have a type, except for what is free-form by nature', () => {
    const unexpected = problems.filter(({ path, schema }) => !freeForm.some(({ is }) => is(path, schema)))
    expect(unexpected.map(({ path, problem }) => `${path}: ${problem}`)).toEqual([])
  })

  test('need every exception', () => {
    const unused = freeForm.filter(({ is }) => !problems.some(({ path, schema }) => is(path, schema)))
    expect(unused.map(({ why }) => why)).toEqual([])
  })
})

test('a schema without a type is found', () => {
  const bad: readonly Schema[] = [
    {},
    { description: 'anything' },
    { type: 'object' },
    { type: 'object', properties: {}, additionalProperties: true },
    { type: ['string', 'array'] },
  ]
  for (const schema of bad) expect([schema, missing(schema) !== undefined]).toEqual([schema, true])
  const good: readonly Schema[] = [
    { $ref: '#/components/schemas/Key' },
    { type: 'object', additionalProperties: { type: 'string' } },
    { type: 'object', properties: {}, additionalProperties: false },
    { const: true },
  ]
  for (const schema of good) expect([schema, missing(schema)]).toEqual([schema, undefined])
})
