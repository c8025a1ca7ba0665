// Tests usage reports of passthrough calls: real ones, possible ones, and inconsistent ones.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { expectCheap } from '../../../test/support/cpu.ts'
import type { Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'
import { readImageUsage } from '../ark-passthrough/images.ts'
import { speech } from '../openai-passthrough/speech.ts'
import { passthroughProtocols } from '../passthrough-protocols.ts'
import { readInputOutputUsage, readInputUsage, readSeconds } from './passthrough-usage.ts'

const totalsWith = (more: object = {}) => ({ input_tokens: 10, output_tokens: 4, total_tokens: 14, ...more })
const drawn = (details: object) => readInputOutputUsage(totalsWith({ output_tokens_details: details }), 'outputImage')
const details = (counts: object) => ({ prompt_tokens: 9, total_tokens: 9, prompt_tokens_details: counts })
const spoken = (usage: object) => speech.readFrame(JSON.stringify({ type: 'speech.audio.done', usage })).usage

/** A report of Mistral on a transcription. */
const heard = (seconds: number | null, [prompt, completion, total]: readonly (number | undefined)[], more?: object) => {
  const counts = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total }
  return readInputOutputUsage({ prompt_audio_seconds: seconds, ...counts, prompt_tokens_details: more }, 'output')
}

const rows: readonly (readonly [string, UsageReport | undefined, Usage | 'nonsense' | undefined])[] = [
  ['input tokens', readInputUsage({ prompt_tokens: 3, total_tokens: 3 }), { input: 3, output: 0 }],
  ['a total only', readInputUsage({ total_tokens: 3 }), { input: 3, output: 0 }],
  ['a total above the input', readInputUsage({ prompt_tokens: 3, total_tokens: 5 }), { input: 5, output: 0 }],
  [
    'a video beside text',
    readInputUsage({ total_tokens: 9, prompt_tokens_details: { text_tokens: 2, image_tokens: 0, video_tokens: 7 } }),
    { input: 2, output: 0, inputImage: 7 },
  ],
  ['text_tokens of null', readInputUsage(details({ text_tokens: null })), { input: 9, output: 0 }],
  [
    'text_tokens of null beside images and video',
    readInputUsage(details({ text_tokens: null, image_tokens: 4, video_tokens: 3 })),
    { input: 2, output: 0, inputImage: 7 },
  ],
  [
    'audio in an embedding',
    readInputUsage(details({ text_tokens: 2, audio_tokens: 4 })),
    { input: 2, output: 0, inputAudio: 4, inputImage: 3 },
  ],
  ['more audio than all', readInputUsage(details({ audio_tokens: 10 })), 'nonsense'],
  ['more audio and text than all', readInputUsage(details({ text_tokens: 5, audio_tokens: 5 })), 'nonsense'],
  ['no tokens', readInputUsage({ prompt_tokens: 0, total_tokens: 0 }), undefined],
  ['no report', readInputUsage(undefined), undefined],
  ['no report, but a search', readInputUsage(null, { searches: 2 }), { input: 0, output: 0, searches: 2 }],
  ['a total below the input', readInputUsage({ prompt_tokens: 3, total_tokens: 2 }), 'nonsense'],
  ['a report that is a number', readInputUsage(7), 'nonsense'],
  ['counts that are strings', readInputUsage({ prompt_tokens: '3' }), 'nonsense'],
  ['negative searches', readInputUsage(undefined, { searches: -1 }), 'nonsense'],
  ['text output', readInputOutputUsage(totalsWith(), 'output'), { input: 10, output: 4 }],
  ['image output', readInputOutputUsage(totalsWith(), 'outputImage'), { input: 10, output: 0, outputImage: 4 }],
  [
    'image output beside text',
    readInputOutputUsage(totalsWith({ output_tokens_details: { image_tokens: 3, text_tokens: 1 } }), 'outputImage'),
    { input: 10, output: 1, outputImage: 3 },
  ],
  [
    'image output with details of 0',
    drawn({ text_tokens: 0, image_tokens: 0 }),
    { input: 10, output: 0, outputImage: 4 },
  ],
  ['image output with other details', drawn({ reasoning_tokens: 0 }), { input: 10, output: 0, outputImage: 4 }],
  [
    'image output after reasoning',
    drawn({ reasoning_tokens: 3 }),
    { input: 10, output: 0, reasoning: 3, outputImage: 1 },
  ],
  ['reasoning in the text', drawn({ reasoning_tokens: 3, text_tokens: 4 }), { input: 10, output: 4 }],
  ['more reasoning than all', drawn({ reasoning_tokens: 5 }), 'nonsense'],
  ['more images than output', drawn({ image_tokens: 5 }), 'nonsense'],
  ['more text and images than output', drawn({ image_tokens: 3, text_tokens: 2 }), 'nonsense'],
  ['negative text', drawn({ text_tokens: -1 }), 'nonsense'],
  ['audio output', spoken(totalsWith()), { input: 10, output: 0, outputAudio: 4 }],
  [
    'audio output with details',
    spoken(totalsWith({ output_token_details: { audio_tokens: 3, text_tokens: 1 } })),
    { input: 10, output: 1, outputAudio: 3 },
  ],
  [
    'cached images beside text',
    readInputOutputUsage(totalsWith({ input_tokens_details: { image_tokens: 7, cached_tokens: 5 } }), 'output'),
    { input: 0, cacheRead: 3, inputImage: 5, cacheReadImage: 2, output: 4 },
  ],
  [
    'audio of Mistral',
    heard(12, [3, 41, 419], { cached_tokens: 0, audio_tokens: 375 }),
    { input: 3, inputAudio: 375, output: 41 },
  ],
  [
    'cached audio of Mistral',
    heard(5, [5, 24, 404], { cached_tokens: 368 }),
    { input: 0, cacheRead: 5, inputAudio: 12, cacheReadAudio: 363, output: 24 },
  ],
  ['audio of Mistral without details', heard(203, [4, 635, 3_264]), { input: 4, inputAudio: 2_625, output: 635 }],
  ['audio of Mistral without a total', heard(3, [8, 4, undefined]), { input: 8, output: 4 }],
  [
    'audio of Mistral with only a total',
    heard(32, [undefined, undefined, 89]),
    { input: 0, inputAudio: 89, output: 0 },
  ],
  ['audio of Mistral with only a length', heard(12, []), undefined],
  ['a total beyond its parts, of no audio', heard(null, [3, 41, 419], { audio_tokens: 375 }), 'nonsense'],
  ['a total of Mistral below its parts', heard(12, [3, 41, 43]), 'nonsense'],
  ['a total of Mistral with too little audio', heard(12, [3, 41, 419], { audio_tokens: 374 }), 'nonsense'],
  ['a total of Mistral with too much audio', heard(12, [3, 41, 419], { audio_tokens: 376 }), 'nonsense'],
  ['more from the cache than was read', heard(5, [5, 24, 404], { cached_tokens: 381 }), 'nonsense'],
  [
    'audio input beside text',
    readInputOutputUsage(totalsWith({ input_token_details: { audio_tokens: 6, text_tokens: 4 } }), 'output'),
    { input: 4, inputAudio: 6, output: 4 },
  ],
  [
    'more audio than input',
    readInputOutputUsage(totalsWith({ input_token_details: { audio_tokens: 11 } }), 'output'),
    'nonsense',
  ],
  ['a total that is not the sum', readInputOutputUsage(totalsWith({ total_tokens: 15 }), 'output'), 'nonsense'],
  [
    'fields of the chat dialect',
    readInputOutputUsage({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }, 'output'),
    { input: 3, output: 2 },
  ],
  ['fields of another dialect', readInputOutputUsage({ promptTokenCount: 1 }, 'output'), 'nonsense'],
  [
    'images of Ark',
    readImageUsage({ generated_images: 2, output_tokens: 5, total_tokens: 7 }, 3),
    { input: 2, output: 0, outputImage: 5, images: 2 },
  ],
  [
    'an image with searches',
    readImageUsage({ generated_images: 1, tool_usage: { web_search: 2 } }, 1),
    { input: 0, output: 0, images: 1, searches: 2 },
  ],
  ['half an image', readImageUsage({ generated_images: 0.5 }, 1), 'nonsense'],
  ['an image without a report', readImageUsage(undefined, 1), { input: 0, output: 0, images: 1 }],
]

test.each(rows)('a usage report is read: %s', (_name, found, expected) => {
  expect(found).toEqual(expected as never)
})

test('seconds are rounded up, and undefined if they are not a number', () => {
  const values = [0, 1.01, '12.5', '', 'x', -1, Number.NaN, Infinity, null, undefined, {}]
  expect(values.map(readSeconds)).toEqual([0, 2, 13, ...Array<undefined>(8).fill(undefined)])
})

test('any usage report is not used, empty or consistent', () => {
  const count = fc.oneof({ weight: 6, arbitrary: fc.nat(20) }, { weight: 1, arbitrary: fc.anything() })
  const recordOf = (...names: readonly string[]) =>
    fc.record(Object.fromEntries(names.map(name => [name, count])), { requiredKeys: [] })
  const reports = fc.tuple(
    recordOf('input_tokens', 'output_tokens', 'total_tokens', 'prompt_audio_seconds'),
    recordOf('text_tokens', 'image_tokens', 'audio_tokens', 'cached_tokens'),
    recordOf('text_tokens', 'image_tokens', 'audio_tokens', 'reasoning_tokens'),
  )
  fc.assert(
    fc.property(reports, ([totals, input, output]) => {
      const report = { ...totals, input_tokens_details: input, output_tokens_details: output }
      const usage = readInputOutputUsage(report, 'outputImage')
      if (usage === undefined || usage === 'nonsense') return
      // -0 in JSON is 0.
      const [read, wrote] = [totals.input_tokens, totals.output_tokens].map(value => ((value ?? 0) as number) + 0)
      const total = (totals.total_tokens ?? read! + wrote!) as number
      expect([inputTokens(usage), outputTokens(usage)]).toEqual([total - wrote!, wrote!])
      if (readSeconds(totals.prompt_audio_seconds) === undefined) expect(total).toBe(read! + wrote!)
      for (const value of Object.values(usage)) expect(Number.isSafeInteger(value) && value >= 0).toBe(true)
    }),
    { numRuns: 5_000 },
  )
})

test('readers do not throw and are fast for any answer or event', async () => {
  const noise = [...'{["0:,}]'].map(piece => piece.repeat(64 * 1024))
  const readAll = () => {
    for (const { readAnswer, readFrame } of Object.values(passthroughProtocols)) {
      fc.assert(
        fc.property(fc.json(), json => {
          readAnswer(Buffer.from(json))
          readFrame(json)
        }),
        { numRuns: 100 },
      )
      for (const text of noise) {
        readAnswer(Buffer.from(text))
        readFrame(text)
      }
    }
  }
  await expectCheap(5_000, readAll)
})

test('any answer with known field names is read without an error', () => {
  const names = ['data', 'results', 'choices', 'usage', 'text', 'meta', 'error', 'type', 'bot_usage', 'id', 'duration']
  const answers = fc.record(Object.fromEntries(names.map(name => [name, fc.jsonValue()])), { requiredKeys: [] })
  fc.assert(
    fc.property(
      answers,
      fc.constantFrom(...Object.values(passthroughProtocols)),
      (answer, { readAnswer, readFrame }) => {
        const text = JSON.stringify(answer)
        expect(() => readAnswer(Buffer.from(text))).not.toThrow()
        expect(() => readFrame(text)).not.toThrow()
      },
    ),
    { numRuns: 2_000 },
  )
})
