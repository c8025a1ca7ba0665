// Tests usage reports: real ones of providers, possible ones, and inconsistent ones.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Usage } from '../../base/money/usage.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'
import { readFrame } from './stream.ts'
import { readUsage } from './usage.ts'

const totals = { prompt_tokens: 10, completion_tokens: 4 }
const prompt = (details: object): object => ({ ...totals, prompt_tokens_details: details })
const completion = (details: object, total?: number): object => ({
  ...totals,
  completion_tokens_details: details,
  ...(total !== undefined && { total_tokens: total }),
})

const rows: readonly (readonly [string, object, Usage])[] = [
  ['totals only', { ...totals, total_tokens: 14 }, { input: 10, output: 4 }],
  ['details that are null', { ...totals, prompt_tokens_details: null, total_tokens: null }, { input: 10, output: 4 }],
  ['details that are zero', prompt({ cached_tokens: 0, audio_tokens: null }), { input: 10, output: 4 }],
  ['some cached input', prompt({ cached_tokens: 6 }), { input: 4, cacheRead: 6, output: 4 }],
  ['all input cached', prompt({ cached_tokens: 10 }), { input: 0, cacheRead: 10, output: 4 }],
  ['cached tokens at the top level', { ...totals, cached_tokens: 6 }, { input: 4, cacheRead: 6, output: 4 }],
  [
    'cache hits and misses',
    { ...totals, prompt_cache_hit_tokens: 6, prompt_cache_miss_tokens: 4 },
    { input: 4, cacheRead: 6, output: 4 },
  ],
  [
    'input written to the cache',
    prompt({ cache_write_tokens: 6 }),
    { input: 4, cacheWrite: 6, untimedWrites: 6, output: 4 },
  ],
  [
    'input read from and written to the cache',
    prompt({ cached_tokens: 3, cache_write_tokens: 6 }),
    { input: 1, cacheRead: 3, cacheWrite: 6, untimedWrites: 6, output: 4 },
  ],
  [
    'input written to the cache for an hour',
    prompt({ cache_creation_input_tokens: 6, cache_creation: { ephemeral_1h_input_tokens: 2 } }),
    { input: 4, cacheWrite: 4, cacheWrite1h: 2, output: 4 },
  ],
  [
    "input written to the cache for an hour, in LiteLLM's form",
    prompt({ cache_creation_tokens: 6, cache_creation_token_details: { ephemeral_1h_input_tokens: 2 } }),
    { input: 4, cacheWrite: 4, cacheWrite1h: 2, output: 4 },
  ],
  [
    'input written to the cache for five minutes',
    prompt({ cache_creation_input_tokens: 6, cache_creation: { ephemeral_5m_input_tokens: 6 } }),
    { input: 4, cacheWrite: 6, output: 4 },
  ],
  ['audio', prompt({ audio_tokens: 7 }), { input: 3, inputAudio: 7, output: 4 }],
  ['an image', prompt({ image_tokens: 7 }), { input: 3, inputImage: 7, output: 4 }],
  [
    'cached text beside audio',
    prompt({ audio_tokens: 7, cached_tokens: 3 }),
    { input: 0, cacheRead: 3, inputAudio: 7, output: 4 },
  ],
  [
    'more cached tokens than text, so some of them are audio',
    prompt({ audio_tokens: 7, cached_tokens: 5 }),
    { input: 0, cacheRead: 3, inputAudio: 5, cacheReadAudio: 2, output: 4 },
  ],
  [
    'reported cached audio',
    prompt({ audio_tokens: 7, cached_tokens: 5, audio_cached_tokens: 5 }),
    { input: 3, inputAudio: 2, cacheReadAudio: 5, output: 4 },
  ],
  [
    'reported cached images',
    prompt({ image_tokens: 7, cached_tokens: 5, cached_tokens_details: { image_tokens: 4 } }),
    { input: 2, cacheRead: 1, inputImage: 3, cacheReadImage: 4, output: 4 },
  ],
  ['reasoning inside the completion', completion({ reasoning_tokens: 3 }, 14), { input: 10, reasoning: 3, output: 1 }],
  ['reasoning only', completion({ reasoning_tokens: 4 }), { input: 10, reasoning: 4, output: 0 }],
  ['reasoning beside the completion', completion({ reasoning_tokens: 9 }, 23), { input: 10, reasoning: 9, output: 4 }],
  ['a total above the sum of its parts', { ...totals, total_tokens: 20 }, { input: 10, output: 10 }],
  ['no output but a total', { prompt_tokens: 10, total_tokens: 14 }, { input: 10, output: 4 }],
  [
    'an output that is null, and a total of the input alone',
    { prompt_tokens: 10, completion_tokens: null, total_tokens: 10 },
    { input: 10, output: 0 },
  ],
  [
    'no output, but reasoning and a total',
    { prompt_tokens: 10, total_tokens: 14, completion_tokens_details: { reasoning_tokens: 3 } },
    { input: 10, reasoning: 3, output: 1 },
  ],
  [
    'audio and images in the output',
    completion({ audio_tokens: 1, image_tokens: 2 }),
    { input: 10, outputAudio: 1, outputImage: 2, output: 1 },
  ],
  [
    'searches and citations, with reasoning beside the totals',
    { ...totals, total_tokens: 14, citation_tokens: 99, num_search_queries: 5, reasoning_tokens: 70 },
    { input: 10, toolUse: 99, reasoning: 70, output: 4, searches: 5 },
  ],
  ['searches', { ...totals, server_tool_use: { web_search_requests: 2 } }, { input: 10, output: 4, searches: 2 }],
  ['no input', { prompt_tokens: 0, completion_tokens: 4 }, { input: 0, output: 4 }],
]

test.each(rows)('a usage report is read: %s', (_name, report, expected) => {
  expect(readUsage(report)).toEqual(expected)
})

const besideTotals: readonly (readonly [string, object, Usage])[] = [
  [
    'OpenRouter: cache writes beside the input',
    {
      prompt_tokens: 1_200,
      completion_tokens: 50,
      total_tokens: 1_250,
      prompt_tokens_details: { cached_tokens: 1_000, cache_write_tokens: 4_000, audio_tokens: 0 },
      cost: 0.01,
      cost_details: { upstream_inference_cost: null },
    },
    { input: 200, cacheRead: 1_000, cacheWrite: 4_000, untimedWrites: 4_000, output: 50 },
  ],
  [
    'cache writes beside the input, included in the total',
    {
      prompt_tokens: 1_200,
      completion_tokens: 50,
      total_tokens: 1_650,
      prompt_tokens_details: { cached_tokens: 1_000, cache_write_tokens: 400 },
    },
    { input: 200, cacheRead: 1_000, cacheWrite: 400, untimedWrites: 400, output: 50 },
  ],
  [
    'cache writes within the input, as the total shows',
    {
      prompt_tokens: 1_200,
      completion_tokens: 50,
      total_tokens: 1_250,
      prompt_tokens_details: { cached_tokens: 1_000, cache_write_tokens: 100 },
    },
    { input: 100, cacheRead: 1_000, cacheWrite: 100, untimedWrites: 100, output: 50 },
  ],
  [
    'cache reads beside the input, as the total shows',
    { ...totals, total_tokens: 20, prompt_tokens_details: { cached_tokens: 6 } },
    { input: 10, cacheRead: 6, output: 4 },
  ],
  [
    'cache reads beside the input, as their size shows',
    prompt({ cached_tokens: 11 }),
    { input: 10, cacheRead: 11, output: 4 },
  ],
  [
    'more cache writes than input',
    prompt({ cache_write_tokens: 11 }),
    { input: 10, cacheWrite: 11, untimedWrites: 11, output: 4 },
  ],
  [
    'more cache reads and writes together than input',
    prompt({ cached_tokens: 6, cache_write_tokens: 6 }),
    { input: 4, cacheRead: 6, cacheWrite: 6, untimedWrites: 6, output: 4 },
  ],
  [
    'an input and a total that include neither cache reads nor writes',
    { ...prompt({ cached_tokens: 60, cache_write_tokens: 6 }), total_tokens: 14 },
    { input: 10, cacheRead: 60, cacheWrite: 6, untimedWrites: 6, output: 4 },
  ],
  [
    'cache misses that equal the input',
    { ...totals, total_tokens: 14, prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 10 },
    { input: 10, cacheRead: 60, output: 4 },
  ],
  [
    "cache fields with Anthropic's names",
    { ...totals, total_tokens: 14, cache_read_input_tokens: 3, cache_creation_input_tokens: 2 },
    { input: 5, cacheRead: 3, cacheWrite: 2, untimedWrites: 2, output: 4 },
  ],
  ['xAI: reasoning beside the output', completion({ reasoning_tokens: 3 }, 17), { input: 10, reasoning: 3, output: 4 }],
  ['more reasoning than output', completion({ reasoning_tokens: 5 }), { input: 10, reasoning: 5, output: 4 }],
  [
    'no output, and as many cache reads as the total has beyond the input',
    { prompt_tokens: 10, total_tokens: 18, prompt_tokens_details: { cached_tokens: 8 } },
    { input: 2, cacheRead: 8, output: 8 },
  ],
  [
    'cache reads beside a total without the output',
    { prompt_tokens: 10, total_tokens: 74, prompt_tokens_details: { cached_tokens: 60 } },
    { input: 10, cacheRead: 60, output: 4 },
  ],
  [
    'cache reads and reasoning beside the totals',
    { ...prompt({ cached_tokens: 60 }), completion_tokens_details: { reasoning_tokens: 30 }, total_tokens: 104 },
    { input: 10, cacheRead: 60, reasoning: 30, output: 4 },
  ],
]

test.each(besideTotals)('counts beside the totals are recognized: %s', (_name, report, expected) => {
  expect(readUsage(report)).toEqual(expected)
})

test('a usage report is found where each vendor puts it', () => {
  const usage = { ...totals }
  for (const chunk of [{ usage }, { x_groq: { id: 'x', usage } }, { choices: [{ index: 0, delta: {}, usage }] }]) {
    expect(readFrame(JSON.stringify({ choices: [], ...chunk })).usage).toEqual({ input: 10, output: 4 })
  }
  expect(readFrame('{"choices":[],"usage":null,"x_groq":{"id":"x"}}').usage).toBeUndefined()
})

test('a usage report without tokens counts as none', () => {
  expect(readUsage({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })).toBeUndefined()
})

test('a missing usage report counts as none', () => {
  expect([readUsage(undefined), readUsage(null)]).toEqual([undefined, undefined])
})

describe('a usage report is not used', () => {
  const byDuration = { ephemeral_1h_input_tokens: 2 }

  test('if its totals are not counts', () => {
    const counts = (input: unknown, output: unknown) => ({ prompt_tokens: input, completion_tokens: output })
    const pairs = [
      [-1, 1],
      [1, -1],
      [1.5, 1],
      ['1', '1'],
      [Infinity, 1],
      [NaN, 1],
      [1, 2 ** 53],
      [1e10, 1],
      [null, 1],
    ]
    const shapes = [0, 5, 'x', '', false, [], {}, { prompt_tokens: 1 }, { completion_tokens: 1 }]
    for (const value of [...shapes, ...pairs.map(([input, output]) => counts(input, output))]) {
      expect([value, readUsage(value)]).toEqual([value, 'nonsense'])
    }
  })

  test.each([
    ['more cache writes for an hour than cache writes', prompt({ cached_tokens: 1, cache_creation: byDuration })],
    ['more audio than input', prompt({ audio_tokens: 11 })],
    ['more audio and images than input', prompt({ audio_tokens: 6, image_tokens: 6 })],
    ['more cached audio than audio', prompt({ audio_tokens: 1, cached_tokens: 2, audio_cached_tokens: 2 })],
    [
      'cache hits and misses that are not the whole input',
      { ...totals, prompt_cache_hit_tokens: 6, prompt_cache_miss_tokens: 5 },
    ],
    ['more reasoning than the total includes', completion({ reasoning_tokens: 20 }, 23)],
    ['more audio than output', completion({ audio_tokens: 5 })],
    ['a total below its parts', { ...totals, total_tokens: 13 }],
    ['a total below its input', { prompt_tokens: 10, total_tokens: 9 }],
    ['an output that is no count', { prompt_tokens: 10, completion_tokens: '4', total_tokens: 14 }],
    ['a total that is a string', { ...totals, total_tokens: '14' }],
    ['a negative total', { ...totals, total_tokens: -14 }],
    ['negative searches', { ...totals, num_search_queries: -1 }],
    ...[-1, '6', 1.5, 1e400, Number.NaN, true, {}].flatMap(value => [
      [`${String(value)} cached tokens`, prompt({ cached_tokens: value })] as const,
      [`${String(value)} reasoning tokens`, completion({ reasoning_tokens: value }, 14)] as const,
    ]),
  ])('if it has %s', (_name, report) => {
    expect(readUsage(report)).toBe('nonsense')
  })
})

const tokens = fc.nat(1_000)
const parts = fc.record({
  text: tokens,
  cached: tokens,
  cacheWritten: tokens,
  audio: tokens,
  image: tokens,
  textOutput: tokens,
  reasoning: tokens,
  audioOutput: tokens,
  imageOutput: tokens,
  isReasoningBeside: fc.boolean(),
})

test('the buckets of a consistent report do not overlap, and add up to the totals of the provider', () => {
  fc.assert(
    fc.property(
      parts,
      ({
        text,
        cached,
        cacheWritten,
        audio,
        image,
        textOutput,
        reasoning,
        audioOutput,
        imageOutput,
        isReasoningBeside,
      }) => {
        const promptTokens = text + cached + cacheWritten + audio + image
        const completionTokens = textOutput + audioOutput + imageOutput + (isReasoningBeside ? 0 : reasoning)
        const usage = readUsage({
          prompt_tokens: promptTokens,
          completion_tokens: completionTokens,
          total_tokens: promptTokens + completionTokens + (isReasoningBeside ? reasoning : 0),
          prompt_tokens_details: {
            cached_tokens: cached,
            cache_write_tokens: cacheWritten,
            audio_tokens: audio,
            image_tokens: image,
          },
          completion_tokens_details: {
            reasoning_tokens: reasoning,
            audio_tokens: audioOutput,
            image_tokens: imageOutput,
          },
        }) as Usage
        expect({ cacheRead: 0, cacheWrite: 0, inputAudio: 0, inputImage: 0, ...usage }).toMatchObject({
          input: text,
          cacheRead: cached,
          cacheWrite: cacheWritten,
          inputAudio: audio,
          inputImage: image,
          output: textOutput,
        })
        expect(inputTokens(usage)).toBe(promptTokens)
        expect(outputTokens(usage)).toBe(textOutput + reasoning + audioOutput + imageOutput)
      },
    ),
    { numRuns: 2_000 },
  )
})

test('any usage report is not used or adds up', () => {
  const value = fc.oneof({ weight: 6, arbitrary: fc.nat(20) }, { weight: 1, arbitrary: fc.anything() })
  const recordOf = (names: readonly string[]) =>
    fc.record(Object.fromEntries(names.map(name => [name, value])), { requiredKeys: [] })
  const reports = fc.record(
    {
      prompt_tokens: fc.nat(100),
      completion_tokens: fc.nat(100),
      total_tokens: fc.nat(200),
      prompt_cache_hit_tokens: value,
      prompt_cache_miss_tokens: value,
      cached_tokens: value,
      prompt_tokens_details: recordOf(['cached_tokens', 'cache_write_tokens', 'audio_tokens', 'image_tokens']),
      completion_tokens_details: recordOf(['reasoning_tokens', 'audio_tokens', 'image_tokens']),
    },
    { requiredKeys: ['prompt_tokens', 'completion_tokens'] },
  )
  fc.assert(
    fc.property(reports, report => {
      const usage = readUsage(report)
      if (usage === 'nonsense') return
      const { prompt_tokens: input, completion_tokens: output, total_tokens: total = input + output } = report
      // Rarely all counts are 0: such a report counts as none.
      if (usage === undefined) return expect([input, output, total]).toEqual([0, 0, 0])
      expect(inputTokens(usage)).toBeGreaterThanOrEqual(input)
      expect(outputTokens(usage)).toBeGreaterThanOrEqual(output)
      expect(inputTokens(usage) + outputTokens(usage)).toBeGreaterThanOrEqual(total)
      for (const count of Object.values(usage)) expect(Number.isSafeInteger(count) && count >= 0).toBe(true)
    }),
    { numRuns: 5_000 },
  )
})
