// The JSON Schema of provider files, which the OpenAPI document has: it accepts what the parser accepts.

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseProvider } from '../../src/upstreams/provider.ts'
import { capabilityFields, modelFields, providerFields, providerSchema } from '../../src/upstreams/provider-schema.ts'
import { traitsSchema } from '../../src/upstreams/trait-parser.ts'
import { misfits } from '../support/json-schema.ts'

type Json = Record<string, unknown>

const folder = join(import.meta.dir, '../../providers')
const files = readdirSync(folder).filter(name => name.endsWith('.json'))
const find = (): never => {
  throw new Error('the schema has no references')
}
const problemsOf = (definition: unknown): readonly string[] => misfits(definition, providerSchema, find)

const whole: Json = {
  id: 'brook',
  name: 'Brook',
  baseUrl: 'http://127.0.0.1:8000',
  keyEnv: 'BROOK_API_KEY',
  baseUrlEnv: 'BROOK_BASE_URL',
  sign: 'bearer',
  speaks: { 'openai-chat': '/chat/completions' },
  keyless: true,
  models: [{ id: 'trout', price: { input: '0.50', output: '1.50' } }],
}

const isAccepted = (definition: unknown): boolean => {
  try {
    parseProvider(JSON.stringify(definition), 'brook.json')
    return true
  } catch {
    return false
  }
}

test.each(files)('%s fits', name => {
  expect(problemsOf(JSON.parse(readFileSync(join(folder, name), 'utf8')))).toEqual([])
})

/** Values of every kind; each is right for some field and wrong for most. No null: for some fields it means absent. */
const values: readonly unknown[] = [
  ...[true, 0, 7, -1, 2.5, 1_000_000_000_000, '', 'brook', 'two words', '/chat', 'https://brook.example', 'max_tokens'],
  ...['effort', [], ['/api'], ['mcp'], ['eu'], ['text', 'image'], ['text', 'text'], ['low'], [1], [{}], {}],
  ...[{ 'openai-chat': '/chat' }, { 'openai-chat': ['/a', '/b'] }, { 'openai-chat': 'bearer' }, { nope: 1 }],
  ...[
    { streamUsage: true },
    { streamUsage: 'yes' },
    { thinking: 'effort' },
    { reads: ['text'] },
    { totalSeconds: 1000 },
  ],
  ...[{ connectSeconds: 5 }, { connectSeconds: 500 }, { 'a/*': 'maker/*' }, { old: 'trout' }, { ownedBy: 'brook' }],
  ...[{ answers: { '/api': ['a.b'] } }, { answers: { '/api': [] } }, { input: '1', output: '2' }, { input: 1 }],
  ...[
    { perTokens: 1, price: { input: 'a', output: 'b' } },
    { perTokens: 2, price: { input: 'a', output: 'b' } },
  ],
  ...[{ image: { kind: 'fixed', tokens: 5 } }, { image: { kind: 'fixed' } }, { image: { kind: 'other' } }],
]

/** What the parser refuses for a reason that a schema cannot say. */
const partly: ReadonlySet<string> = new Set([
  'name', // no control characters
  ...['baseUrl', 'keyEnv', 'baseUrlEnv', 'speaks', 'counts', 'sign', 'quirks', 'makers', 'formerNames', 'localServer'],
])

const cases = [
  ...Object.keys(providerFields).map(field => ['provider', field] as const),
  ...Object.keys(modelFields).map(field => ['model', field] as const),
  ...Object.keys(capabilityFields).map(field => ['can', field] as const),
  ...Object.keys(traitsSchema.properties as Json).map(field => ['traits', field] as const),
]

function withValue(of: string, field: string, value: unknown): Json {
  if (of === 'provider') return { ...whole, [field]: value }
  if (of === 'model') return { ...whole, models: [{ ...(whole.models as Json[])[0], [field]: value }] }
  return { ...whole, [of]: { [field]: value } }
}

describe('the schema and the parser agree on', () => {
  test.each(cases)('%s.%s', (of, field) => {
    const seen = new Set<boolean>()
    for (const value of values) {
      const definition = withValue(of, field, value)
      const [accepted, fits] = [isAccepted(definition), problemsOf(definition).length === 0]
      seen.add(fits)
      if (accepted) expect([value, fits]).toEqual([value, true])
      if (!accepted && !partly.has(field))
        expect([value, fits, 'parser refuses']).toEqual([value, false, 'parser refuses'])
    }
    expect(seen.has(false)).toBe(true)
  })

  test.each(['provider', 'model', 'can', 'traits'])('unknown fields of %s', of => {
    const definition = withValue(of, 'nope', 1)
    expect([isAccepted(definition), problemsOf(definition).length]).toEqual([false, 1])
  })
})
