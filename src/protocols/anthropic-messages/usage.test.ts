// Tests that usage reports are read into buckets and written back.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Usage } from '../../base/money/usage.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'
import { Losses } from '../neutral/losses.ts'
import { readServedClass, readUsage, writeTotals, writeUsage } from './usage.ts'

const plain = { input_tokens: 40, output_tokens: 30 }
const byDuration = { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 7 }

describe('a usage report', () => {
  test.each<readonly [string, unknown, Usage]>([
    ['without cache', plain, { input: 40, output: 30 }],
    [
      'P15: with cached tokens that its input does not include',
      { ...plain, cache_read_input_tokens: 60, cache_creation_input_tokens: 5 },
      { input: 40, cacheRead: 60, cacheWrite: 5, untimedWrites: 5, output: 30 },
    ],
    [
      'P16: with cache writes in total and by duration, which are billed once',
      { ...plain, cache_creation_input_tokens: 10, cache_creation: byDuration },
      { input: 40, cacheWrite: 3, cacheWrite1h: 7, output: 30 },
    ],
    [
      'with cache writes by duration only',
      { ...plain, cache_creation: byDuration },
      {
        input: 40,
        cacheWrite: 3,
        cacheWrite1h: 7,
        output: 30,
      },
    ],
    [
      'with cache writes in total only',
      { ...plain, cache_creation_input_tokens: 9, cache_creation: { ephemeral_5m_input_tokens: 0 } },
      { input: 40, cacheWrite: 9, output: 30 },
    ],
    [
      'with thinking that its output includes',
      { ...plain, output_tokens_details: { thinking_tokens: 12 } },
      {
        input: 40,
        output: 18,
        reasoning: 12,
      },
    ],
    [
      'with searches',
      { ...plain, server_tool_use: { web_search_requests: 2, web_fetch_requests: 1 } },
      {
        input: 40,
        output: 30,
        searches: 2,
      },
    ],
    [
      'with null fields',
      { ...plain, cache_read_input_tokens: null, cache_creation: null, server_tool_use: null },
      {
        input: 40,
        output: 30,
      },
    ],
    [
      'P21: with a summary and an adviser, which its totals do not include',
      {
        ...plain,
        iterations: [
          { type: 'message', input_tokens: 40, output_tokens: 30 },
          { type: 'compaction', input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 9 },
          { type: 'advisor_message', model: 'm', input_tokens: 5, output_tokens: 6, cache_creation: byDuration },
        ],
      },
      {
        input: 145,
        cacheRead: 9,
        cacheWrite: 3,
        cacheWrite1h: 7,
        output: 56,
        longestInput: 109,
        helpers: { input: 105, cacheRead: 9, cacheWrite: 3, cacheWrite1h: 7, output: 26 },
      } as Usage,
    ],
    [
      'of several readings, of which the longest is known',
      { ...plain, iterations: [15, 25].map(tokens => ({ type: 'message', input_tokens: tokens })) },
      { input: 40, output: 30, longestInput: 25 },
    ],
    [
      'of readings that are not all listed, of which the longest is unknown',
      { ...plain, iterations: [15, 24].map(tokens => ({ type: 'message', input_tokens: tokens })) },
      { input: 40, output: 30 },
    ],
    [
      'P21: of a fallback, whose tokens are its totals',
      { ...plain, iterations: [{ type: 'fallback_message', model: 'm', input_tokens: 40, output_tokens: 30 }] },
      { input: 40, output: 30 },
    ],
  ])('%s is read', (_name, report, usage) => {
    expect(readUsage(report)).toEqual(usage)
  })

  test.each([undefined, null, {}, { input_tokens: 0, output_tokens: 0 }, { service_tier: 'standard' }])(
    'without tokens counts as no report: %p',
    report => expect(readUsage(report)).toBeUndefined(),
  )

  test('with more thinking than output has its output beside the thinking', () => {
    const report = { ...plain, output_tokens_details: { thinking_tokens: 31 } }
    expect(readUsage(report)).toMatchObject({ output: plain.output_tokens, reasoning: 31 })
  })

  test('with cache writes by duration and in total counts the greater of both', () => {
    const split = { ephemeral_5m_input_tokens: 7, ephemeral_1h_input_tokens: 5 }
    const readWithTotal = (total: number) =>
      readUsage({ ...plain, cache_creation_input_tokens: total, cache_creation: split }) as Usage
    expect(readWithTotal(0)).toMatchObject({ cacheWrite: 7, cacheWrite1h: 5 })
    expect(readWithTotal(9)).toMatchObject({ cacheWrite: 7, cacheWrite1h: 5 })
    expect(readWithTotal(20)).toMatchObject({ cacheWrite: 15, cacheWrite1h: 5 })
  })

  test.each<readonly [string, unknown]>([
    ['a string', 'x'],
    ['a list', [1]],
    ['output without input', { output_tokens: 5 }],
    ...[-1, '6', 1.5, 1e400, true, {}].flatMap(value => [
      [`${String(value)} input tokens`, { ...plain, input_tokens: value }] as const,
      [`${String(value)} output tokens`, { ...plain, output_tokens: value }] as const,
      [`${String(value)} cached tokens`, { ...plain, cache_read_input_tokens: value }] as const,
      [
        `${String(value)} input tokens of a summary`,
        { ...plain, iterations: [{ type: 'compaction', input_tokens: value }] },
      ] as const,
    ]),
  ])('is not used: %s', (_name, report) => {
    expect(readUsage(report)).toBe('nonsense')
  })
})

describe('a later report of a stream', () => {
  const start = readUsage({
    ...plain,
    output_tokens: 1,
    cache_read_input_tokens: 60,
    cache_creation: byDuration,
  }) as Usage

  test('with only the output keeps the other counts', () => {
    expect(readUsage({ output_tokens: 89 }, start)).toEqual({ ...start, output: 89 })
  })

  test('P16: with cache writes but without durations keeps the durations', () => {
    const end = { input_tokens: 40, output_tokens: 89, cache_creation_input_tokens: 10, cache_read_input_tokens: 60 }
    expect(readUsage(end, start)).toEqual({ ...start, output: 89 })
    const all1h: Usage = { input: 1, output: 1, cacheWrite1h: 7 }
    expect(readUsage({ output_tokens: 2, cache_creation_input_tokens: 9 }, all1h)).toMatchObject({ cacheWrite1h: 9 })
  })

  const iterations = [
    { type: 'compaction', input_tokens: 100, output_tokens: 20 },
    { type: 'message', ...plain },
  ]
  test.each([
    ['repeated', { output_tokens: 30, iterations }],
    ['repeated with the totals', { ...plain, iterations }],
    ['left out', { output_tokens: 30 }],
    ['left out beside the totals', plain],
    ['empty', { ...plain, iterations: [] }],
  ])('P21: counts a summary once, if it is %s', (_how, report) => {
    const withSummary = readUsage({ ...plain, output_tokens: 1, iterations }) as Usage
    expect(withSummary).toMatchObject({ input: 140, output: 21 })
    const later = readUsage(report, withSummary) as Usage
    expect(later).toMatchObject({ input: 140, output: 50 })
    expect(readUsage(report, later)).toEqual(later)
  })

  test('with all counts replaces the earlier ones', () => {
    const end = { input_tokens: 50, output_tokens: 89, cache_read_input_tokens: 70, cache_creation_input_tokens: 12 }
    const read = readUsage({ ...end, output_tokens_details: { thinking_tokens: 9 } }, start)
    expect(read).toEqual({ input: 50, cacheRead: 70, cacheWrite: 5, cacheWrite1h: 7, output: 80, reasoning: 9 })
  })
})

const tokens = fc.nat(1_000)
const buckets = fc.record({ input: tokens, cacheRead: tokens, cacheWrite: tokens, cacheWrite1h: tokens })
const outputs = fc.record({ output: tokens, reasoning: tokens, searches: tokens })

test('the buckets of a valid report add up to its totals, and are written back', () => {
  fc.assert(
    fc.property(buckets, outputs, (inputs, outputCounts) => {
      const usage = { ...inputs, ...outputCounts, input: inputs.input + 1 }
      const report = writeUsage(usage, undefined, new Losses()) as Record<string, number>
      expect(report.input_tokens! + report.cache_read_input_tokens! + report.cache_creation_input_tokens!).toBe(
        inputTokens(usage),
      )
      expect(report.output_tokens).toBe(outputTokens(usage))
      const readBack = readUsage(report) as Usage
      expect({ cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, reasoning: 0, searches: 0, ...readBack }).toEqual(usage)
    }),
  )
})

test('buckets of other dialects become input or cache', () => {
  const read = { input: 1, inputAudio: 2, inputImage: 3, toolUse: 4, cacheReadAudio: 5, cacheReadImage: 6 }
  const totals = { input_tokens: 10, cache_read_input_tokens: 11, output_tokens: 7 }
  expect(writeTotals({ ...read, output: 7 })).toMatchObject(totals)
})

test('any usage report is invalid, empty, or adds up', () => {
  const value = fc.oneof({ weight: 6, arbitrary: fc.nat(20) }, { weight: 1, arbitrary: fc.anything() })
  const report = fc.dictionary(
    fc.constantFrom(...Object.keys(writeUsage({ input: 1, output: 1 }, undefined, new Losses())), 'iterations'),
    value,
  )
  fc.assert(
    fc.property(report, json => {
      const usage = readUsage(json)
      if (usage === 'nonsense' || usage === undefined) return
      for (const count of Object.values(usage)) expect(Number.isSafeInteger(count) && count >= 0).toBe(true)
      // -0 in JSON is 0.
      expect(outputTokens(usage)).toBe(((json.output_tokens as number) ?? 0) + 0)
    }),
    { numRuns: 2_000 },
  )
})

test('the served service class is read and written', () => {
  expect(readServedClass({ service_tier: 'standard', speed: 'fast' })).toBe('fast')
  expect(readServedClass({ service_tier: 'priority', speed: 'standard' })).toBe('priority')
  expect(readServedClass({ service_tier: null })).toBeUndefined()
  expect(readServedClass(5)).toBeUndefined()
  const served = (serviceClass: string) => writeUsage({ input: 1, output: 1 }, serviceClass, new Losses())
  expect(served('default')).toMatchObject({ service_tier: 'standard', speed: null })
  expect(served('constructor')).toMatchObject({ service_tier: null })
})
