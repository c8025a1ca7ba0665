// Tests every trait with a valid and an invalid value.

import { describe, expect, test } from 'bun:test'
import { parseTraits } from './trait-parser.ts'

const read = (value: unknown): unknown =>
  parseTraits(value, problem => {
    throw new Error(problem)
  })

const good: Readonly<Record<string, readonly unknown[]>> = {
  reads: [['text'], ['text', 'image', 'audio', 'file', 'video']],
  thinking: ['none', 'effort', 'level', 'budget', 'adaptive', 'either'],
  stopsThinking: [true, false],
  efforts: [[], ['low'], ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']],
  budgetMin: [0, 1024],
  budgetMax: [24_576],
  sampling: [true, false],
  samplingWithoutThinking: [true],
  forcedTool: [false],
  schema: [false],
  schemaWithTools: [false],
  serverToolsWithFunctions: [true, false],
  richResults: [false],
  cacheMarks: [true, false],
  system: [false],
  prefill: [false],
  mediaTokens: [
    {},
    { image: { kind: 'fixed', tokens: 16_384 }, audioSecond: 32, videoFrame: 258, pdfPage: 258, pdfPagesMax: 1_000 },
    { image: { kind: 'tiles', base: 85, tile: 170 } },
    { image: { kind: 'patches', side: 28, patchesMax: 1_568 } },
    { image: { kind: 'patches', side: 32, patchesMax: 9, highPatchesMax: 3, multiplier: 1.62, base: 1 } },
  ],
}

const bad: Readonly<Record<string, readonly unknown[]>> = {
  reads: [[], 'text', ['smell'], ['text', 'text'], [1], null],
  thinking: ['never', true, ['budget'], 'constructor'],
  stopsThinking: ['true', 1, null],
  efforts: [['huge'], 'low', ['low', 'low']],
  budgetMin: [-1, 0.5, '1024', Infinity],
  budgetMax: ['max', -1],
  sampling: ['no'],
  samplingWithoutThinking: ['yes'],
  forcedTool: [0],
  schema: ['yes'],
  schemaWithTools: [1],
  serverToolsWithFunctions: ['flag'],
  richResults: [null],
  cacheMarks: ['some'],
  system: ['none'],
  prefill: ['no'],
  mediaTokens: [
    [],
    5,
    null,
    { images: {} },
    { image: 5 },
    { image: {} },
    { image: { kind: 'round' } },
    { image: { kind: 'toString' } },
    { image: { kind: 'fixed' } },
    { image: { kind: 'fixed', tokens: 0 } },
    { image: { kind: 'fixed', tokens: '5' } },
    { image: { kind: 'fixed', tokens: 5, tile: 5 } },
    { image: { kind: 'fixed', tokens: 1e9 } },
    { image: { kind: 'tiles', base: 85 } },
    { image: { kind: 'patches', side: -1, patchesMax: 5 } },
    { audioSecond: 0 },
    { audioSecond: Infinity },
    { pdfPage: '258' },
  ],
}

describe.each(Object.keys(good))('the trait %s', name => {
  test('is read', () => {
    for (const value of good[name]!) expect(read({ [name]: value })).toEqual({ [name]: value })
  })

  test('is refused by name when its value is invalid', () => {
    for (const value of bad[name]!) expect(() => read({ [name]: value })).toThrow(`"traits.${name}" must be `)
  })
})

test.each([null, [[]], 'budget', 1])('traits that are %p are refused', value => {
  expect(() => read(value)).toThrow('"traits" must be an object')
})

test.each(['thinks', 'toString', '__proto__x'])('a trait named %s is refused', name => {
  expect(() => read({ [name]: true })).toThrow(`unknown field "${name}"`)
})

test('a minimum budget above the maximum is refused', () => {
  expect(() => read({ budgetMin: 2, budgetMax: 1 })).toThrow('budgetMin')
})
