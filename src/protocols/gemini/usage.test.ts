// Tests that usage is read into buckets whose sum is Google's own total, and written back.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Usage } from '../../base/money/usage.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'
import { readQueries, readUsage, writeUsage } from './usage.ts'

const detail = (modality: string, tokenCount: unknown) => ({ modality, tokenCount })

describe('P20: a usage report is read:', () => {
  const rows: readonly (readonly [string, Readonly<Record<string, unknown>>, Usage])[] = [
    [
      'the golden report',
      {
        promptTokenCount: 100,
        cachedContentTokenCount: 60,
        candidatesTokenCount: 30,
        thoughtsTokenCount: 10,
        totalTokenCount: 140,
      },
      { input: 40, cacheRead: 60, output: 30, reasoning: 10 },
    ],
    [
      'input of tools',
      { promptTokenCount: 10, toolUsePromptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 20 },
      { input: 10, toolUse: 7, output: 3 },
    ],
    [
      'modalities',
      {
        promptTokenCount: 100,
        cachedContentTokenCount: 50,
        candidatesTokenCount: 20,
        totalTokenCount: 120,
        promptTokensDetails: [
          detail('TEXT', 30),
          detail('AUDIO', 30),
          detail('IMAGE', 20),
          detail('VIDEO', 10),
          detail('DOCUMENT', 10),
        ],
        cacheTokensDetails: [detail('TEXT', 20), detail('AUDIO', 20), detail('IMAGE', 10)],
        candidatesTokensDetails: [detail('TEXT', 5), detail('AUDIO', 7), detail('IMAGE', 8)],
      },
      {
        input: 20,
        cacheRead: 20,
        inputAudio: 10,
        cacheReadAudio: 20,
        inputImage: 20,
        cacheReadImage: 10,
        output: 5,
        outputAudio: 7,
        outputImage: 8,
      },
    ],
    [
      'cached tokens of unknown modality',
      {
        promptTokenCount: 10,
        cachedContentTokenCount: 8,
        totalTokenCount: 10,
        promptTokensDetails: [detail('AUDIO', 5)],
      },
      { input: 0, cacheRead: 5, inputAudio: 2, cacheReadAudio: 3, output: 0 },
    ],
    [
      'thoughts only in the total',
      { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 9 },
      { input: 5, output: 2, reasoning: 2 },
    ],
    [
      'no total',
      { promptTokenCount: 5, candidatesTokenCount: 2, thoughtsTokenCount: 1 },
      { input: 5, output: 2, reasoning: 1 },
    ],
  ]

  test.each(rows)('%s', (_name, report, usage) => {
    expect(readUsage(report)).toEqual(usage)
    const total = inputTokens(usage) + outputTokens(usage)
    expect(total).toBe((report.totalTokenCount as number | undefined) ?? total)
  })
})

const includedCounts: readonly (readonly [string, Readonly<Record<string, unknown>>, Usage])[] = [
  [
    'thoughts within the candidates',
    { promptTokenCount: 5, candidatesTokenCount: 9, thoughtsTokenCount: 4, totalTokenCount: 14 },
    { input: 5, output: 5, reasoning: 4 },
  ],
  [
    'input of tools within the prompt',
    { promptTokenCount: 50, toolUsePromptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 53 },
    { input: 43, toolUse: 7, output: 3 },
  ],
  [
    'thoughts within the candidates and input of tools within the prompt',
    {
      promptTokenCount: 50,
      toolUsePromptTokenCount: 7,
      candidatesTokenCount: 30,
      thoughtsTokenCount: 20,
      totalTokenCount: 80,
    },
    { input: 43, toolUse: 7, output: 10, reasoning: 20 },
  ],
  [
    'input of tools within the prompt, thoughts beside the candidates',
    {
      promptTokenCount: 50,
      toolUsePromptTokenCount: 7,
      candidatesTokenCount: 30,
      thoughtsTokenCount: 20,
      totalTokenCount: 100,
    },
    { input: 43, toolUse: 7, output: 30, reasoning: 20 },
  ],
  [
    'cached tokens beside the prompt, without a total',
    { promptTokenCount: 5, cachedContentTokenCount: 6 },
    { input: 5, cacheRead: 6, output: 0 },
  ],
  [
    'cached tokens beside the prompt, with a total',
    { promptTokenCount: 5, cachedContentTokenCount: 6, candidatesTokenCount: 2, totalTokenCount: 13 },
    { input: 5, cacheRead: 6, output: 2 },
  ],
  [
    'a total with more thoughts than are reported',
    { promptTokenCount: 5, candidatesTokenCount: 5, thoughtsTokenCount: 1, totalTokenCount: 12 },
    { input: 5, output: 5, reasoning: 2 },
  ],
]

test.each(includedCounts)('the total shows which counts include others: %s', (_name, report, usage) => {
  expect(readUsage(report)).toEqual(usage)
})

describe('a usage report is not used:', () => {
  const rows: readonly unknown[] = [
    5,
    [],
    { promptTokenCount: -1 },
    { promptTokenCount: 1.5 },
    { promptTokenCount: '5' },
    { promptTokenCount: 1e10 },
    { promptTokenCount: 5, candidatesTokenCount: 5, totalTokenCount: 9 },
    { promptTokenCount: 5, promptTokensDetails: [detail('AUDIO', 6)] },
    { promptTokenCount: 5, promptTokensDetails: [detail('AUDIO', 'x')] },
    { promptTokenCount: 5, cachedContentTokenCount: 2, cacheTokensDetails: [detail('AUDIO', 2)] },
    { promptTokenCount: 5, candidatesTokenCount: 2, candidatesTokensDetails: [detail('IMAGE', 3)] },
    { candidatesTokenCount: 5, totalTokenCount: 5 },
  ]
  test.each(rows.map(row => [row] as const))('%j', report => {
    expect(readUsage(report)).toBe('nonsense')
  })
})

test.each([undefined, null, {}, { promptTokenCount: 0 }])(
  'a usage report without tokens counts as none: %j',
  report => {
    expect(readUsage(report)).toBeUndefined()
  },
)

test('search queries are read, but for empty ones', () => {
  expect(readQueries({ groundingMetadata: { webSearchQueries: ['a', 'b', 'a', '', 5] } })).toEqual(['a', 'b', 'a'])
  for (const candidate of [{ groundingMetadata: null }, 5, {}]) expect(readQueries(candidate)).toEqual([])
})

test('written usage is read back the same, and adds up', () => {
  const count = fc.nat(1_000_000)
  const usages = fc.record(
    {
      input: fc.integer({ min: 1, max: 1_000 }),
      output: count,
      cacheRead: count,
      inputAudio: count,
      cacheReadAudio: count,
      inputImage: count,
      cacheReadImage: count,
      toolUse: count,
      reasoning: count,
      outputAudio: count,
      outputImage: count,
    },
    { requiredKeys: ['input', 'output'] },
  )
  fc.assert(
    fc.property(usages, usage => {
      const isWritten = ([name, tokens]: [string, number]): boolean => name === 'output' || tokens !== 0
      const filled = Object.fromEntries(Object.entries(usage).filter(isWritten))
      expect(readUsage(writeUsage(usage))).toEqual(filled as unknown as Usage)
    }),
  )
})
