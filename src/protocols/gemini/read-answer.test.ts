// Tests how answers of upstreams are measured as they pass, and how they are read into valid neutral events.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { assertCompleteStream } from '../../../test/support/complete-stream.ts'
import { expectCheap } from '../../../test/support/cpu.ts'
import { Readings } from '../../../test/support/readings.ts'
import { Refusal } from '../../base/errors.ts'
import type { AnswerEvent } from '../neutral/answer.ts'
import { collectAnswer } from '../neutral/answer-collector.ts'
import { Losses } from '../neutral/losses.ts'
import type { TranslationNotes } from '../neutral/translation-notes.ts'
import type { AnswerSource } from '../protocol.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { partFields } from './fields.ts'
import { openEventReader, readWholeAnswer } from './read-answer.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'

const golden = (name: string): string => readFileSync(`${import.meta.dir}/../../../test/golden/${name}`, 'utf8')
const goldenJson = JSON.parse(golden('gemini.json')) as object
const goldenChunks = golden('gemini.sse')
  .split(/\r?\n\r?\n/)
  .flatMap(block => /^data: (.*)$/m.exec(block)?.[1] ?? [])

function source(notes: Partial<TranslationNotes> = {}): AnswerSource {
  let minted = 0
  const all = { losses: new Losses(), renamed: new Map(), ...notes }
  return { origin: 'here', notes: all, mintCallId: () => `minted_${++minted}` }
}

function read(chunks: readonly unknown[], from = source()): readonly AnswerEvent[] {
  const reader = openEventReader(from)
  const events = [...chunks.flatMap(chunk => reader.read(chunk)), ...reader.end()]
  assertCompleteStream(events)
  return events
}
const answerOf = (chunks: readonly unknown[], from = source()) => collectAnswer(read(chunks, from))
const chunk = (parts: readonly object[], more: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts }, ...more }],
})
const firstParts = (chunks: readonly unknown[], from = source()) => answerOf(chunks, from).choices[0]?.parts

describe('the golden answer', () => {
  const expected = {
    id: 'r1',
    model: 'gemini-x',
    choices: [
      {
        parts: [
          { kind: 'reasoning', text: 'Let me think.', sealed: { origin: 'here', form: 'shown', value: '' } },
          { kind: 'text', text: 'Hello world' },
          {
            kind: 'call',
            id: 'fc1',
            name: 'get_weather',
            arguments: '{"city":"Paris"}',
            sealed: { origin: 'here', form: 'thought', value: 'AbCd' },
          },
        ],
        finish: 'calls',
      },
    ],
    usage: { input: 40, cacheRead: 60, output: 30, reasoning: 10 },
  } as ReturnType<typeof readWholeAnswer>

  test('is read from a plain answer', () => {
    expect(readWholeAnswer(goldenJson, source())).toEqual(expected)
  })

  test('is read from a stream', () => {
    expect(goldenChunks).toHaveLength(5)
    expect(answerOf(goldenChunks.map(data => JSON.parse(data) as unknown))).toEqual(expected)
  })

  test('is measured as it passes, and its last usage report counts', () => {
    const frames = goldenChunks.map(readFrame)
    expect(frames.map(frame => frame.kind)).toEqual(['content', 'content', 'content', 'content', 'closing'])
    expect(frames.map(frame => frame.finishes)).toEqual([0, 0, 0, 0, 1])
    expect(frames[0]!.usage).toEqual({ input: 40, cacheRead: 60, output: 0, reasoning: 10 })
    expect(frames.at(-1)!.usage).toEqual({ input: 40, cacheRead: 60, output: 30, reasoning: 10 })
    const bytes = frames.reduce((sum, frame) => sum + frame.outputBytes, 0)
    const whole = readAnswer(Buffer.from(golden('gemini.json')))!
    expect(whole).toMatchObject({ usage: frames.at(-1)!.usage, json: goldenJson })
    // Each piece is rounded on its own, so the sum may differ by a little.
    expect(Math.abs(whole.outputBytes - bytes)).toBeLessThanOrEqual(2)
  })
})

describe('a plain answer', () => {
  const answerFor = (json: unknown) => readAnswer(Buffer.from(typeof json === 'string' ? json : JSON.stringify(json)))

  const invalid = ['', '{', '[]', '5', 'null', '{}', '{"usageMetadata":{}}', '[1,2]', '{"candidates":5}']
  test.each(invalid)('is not recognized: %s', body => {
    expect(answerFor(body)).toBeUndefined()
  })

  test('may be an error, also in a list', () => {
    const details = [{ '@type': 'x' }, { reason: 'API_KEY_INVALID' }]
    const error = { code: 429, message: 'slow', status: 'RESOURCE_EXHAUSTED', details }
    const names = { type: 'RESOURCE_EXHAUSTED', code: 'API_KEY_INVALID' }
    const expectedError = { status: 429, message: 'slow', ...names, details }
    expect(answerFor({ error })).toEqual({ outputBytes: 0, error: expectedError })
    expect(answerFor([{ error }])).toEqual({ outputBytes: 0, error: expectedError })
    expect(answerFor({ error: 'no' })!.error).toEqual({ status: 502, message: 'no' })
    expect(answerFor({ error: { message: 5 } })!.error!.message).toBe('The upstream gave no reason.')
  })

  test('may be that of a blocked prompt', () => {
    const usageMetadata = { promptTokenCount: 4, totalTokenCount: 4 }
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata }
    expect(answerFor(blocked)).toMatchObject({ outputBytes: 0, usage: { input: 4, output: 0 } })
    const choices = [{ parts: [], finish: 'filtered' as const }]
    expect(readWholeAnswer(blocked, source())).toEqual({ choices, usage: { input: 4, output: 0 } })
    expect(readFrame(JSON.stringify(blocked))).toMatchObject({ kind: 'closing', finishes: 1 })
  })

  test('reports its service class and its searches', () => {
    const usageMetadata = { promptTokenCount: 1, totalTokenCount: 1 }
    const served = { ...chunk([{ text: 'x' }], { groundingMetadata: { webSearchQueries: ['a', 'b'] } }), usageMetadata }
    expect(answerFor(served)!.queries).toEqual(['a', 'b'])
    expect(answerFor({ ...served, usageMetadata: { ...usageMetadata, serviceTier: 'FLEX' } })!.serviceClass).toBe(
      'flex',
    )
    expect(answerFor({ ...served, usageMetadata: { trafficType: 'ON_DEMAND_PRIORITY' } })!.serviceClass).toBe(
      'priority',
    )
  })
})

describe('a frame', () => {
  test('is measured by the kind of its characters', () => {
    expect(readFrame(JSON.stringify(chunk([{ text: '江河' }, { thought: true, text: '水' }])))).toMatchObject({
      outputBytes: 12,
      thoughtBytes: 4,
    })
    const functionCall = { name: 'flow', args: { to: '江' } }
    expect(readFrame(JSON.stringify(chunk([{ functionCall }]))).outputBytes).toBe(4 + estimateTextBytes('{"to":"江"}'))
  })

  const rows: readonly (readonly [unknown, string])[] = [
    [undefined, 'aside'],
    ['[DONE]', 'garbage'],
    ['', 'garbage'],
    ['5', 'garbage'],
    [{ error: { code: 503, message: 'm', status: 'UNAVAILABLE' } }, 'error'],
    [[{ error: { code: 503 } }], 'error'],
    [chunk([{ text: '' }]), 'opening'],
    [chunk([{ text: 'x' }]), 'content'],
    [chunk([{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }]), 'content'],
    [chunk([], { finishReason: 'STOP' }), 'closing'],
    [chunk([{ text: 'x' }], { finishReason: 'MAX_TOKENS' }), 'closing'],
    [chunk([{ text: 'x' }], { finishReason: 'FINISH_REASON_UNSPECIFIED' }), 'content'],
    [{ usageMetadata: { promptTokenCount: 1 } }, 'usage'],
    [{}, 'opening'],
  ]
  test.each(rows)('%j is of the kind %s', (data, kind) => {
    const text = data === undefined || typeof data === 'string' ? data : JSON.stringify(data)
    expect(readFrame(text).kind as string).toBe(kind)
  })
})

describe('the reader of events', () => {
  test('P25: keeps signatures of thoughts, of calls, of text, and without content', () => {
    const sealed = (value: string) => ({ sealed: { origin: 'here', form: 'thought', value } })
    const parts = firstParts([
      chunk([{ text: 'hm', thought: true }]),
      chunk([{ text: '', thought: true, thoughtSignature: 'A' }]),
      chunk([{ text: 'yes', thoughtSignature: 'B' }]),
      chunk([{ functionCall: { name: 'f' }, thoughtSignature: 'C' }, { functionCall: { name: 'f', args: { a: 1 } } }]),
      chunk([{ text: '', thoughtSignature: 'D' }], { finishReason: 'STOP' }),
    ])
    expect(parts as unknown).toEqual([
      { kind: 'reasoning', text: 'hm', ...sealed('A') },
      { kind: 'text', text: 'yes' },
      { kind: 'reasoning', text: '', ...sealed('B') },
      { kind: 'call', id: 'minted_1', name: 'f', arguments: '{}', ...sealed('C') },
      { kind: 'call', id: 'minted_2', name: 'f', arguments: '{"a":1}' },
      { kind: 'reasoning', text: '', ...sealed('D') },
    ])
  })

  test('reads several candidates at the same time', () => {
    const candidateOf = (index: number, text: string, more: object = {}) => ({
      index,
      content: { parts: [{ text }] },
      ...more,
    })
    const { choices } = answerOf([
      { candidates: [candidateOf(0, 'a'), candidateOf(1, 'x')] },
      { candidates: [candidateOf(1, 'y', { finishReason: 'SAFETY' })] },
      { candidates: [candidateOf(0, 'b', { finishReason: 'STOP' })] },
    ])
    expect(choices).toEqual([
      { parts: [{ kind: 'text', text: 'ab' }], finish: 'stop' },
      { parts: [{ kind: 'text', text: 'xy' }], finish: 'filtered' },
    ])
  })

  const finishes: readonly (readonly [string, string])[] = [
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['RECITATION', 'filtered'],
    ['MALFORMED_FUNCTION_CALL', 'malformed'],
    ['OTHER', 'other'],
    ['CONTINUATION', 'length'],
    ['SOMETHING_NEW', 'other'],
  ]
  test.each(finishes)('P37: reads the finish reason %s as %s', (reason, finish) => {
    expect(answerOf([chunk([{ text: 'x' }], { finishReason: reason })]).choices[0]!.finish as string).toBe(finish)
  })

  test('restores tool names, free text of custom tools, and an answer that came as a tool call', () => {
    const notes = { renamed: new Map([['f_2', 'f 2']]), wrapped: new Set(['c']), schemaTool: 'give_answer' }
    const parts = firstParts(
      [
        chunk([
          { functionCall: { id: 'x', name: 'f_2', args: {} } },
          { functionCall: { id: 'x', name: 'c', args: { input: 'free' } } },
          { functionCall: { name: 'give_answer', args: { a: 1 } } },
        ]),
      ],
      source(notes),
    )
    expect(parts).toEqual([
      { kind: 'call', id: 'x', name: 'f 2', arguments: '{}' },
      { kind: 'call', id: 'minted_1', name: 'c', arguments: 'free', custom: true },
      { kind: 'text', text: '{"a":1}' },
    ])
    const schemaCall = chunk([{ functionCall: { name: 'give_answer' } }], { finishReason: 'STOP' })
    expect(answerOf([schemaCall], source(notes)).choices[0]!.finish).toBe('stop')
  })

  test('converts positions of citations to code units', () => {
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: 'https://x.example', title: 'X' } }, { web: { uri: 'https://y.example' } }],
      groundingSupports: [
        { segment: { startIndex: 3, endIndex: 8, text: 'ünö' }, groundingChunkIndices: [0, 1, 9] },
        { segment: { endIndex: 99 }, groundingChunkIndices: [0] },
      ],
    }
    const from = source()
    const chunks = [chunk([{ text: 'ä ünö' }]), chunk([{ text: '' }], { groundingMetadata })]
    // The words of the segment are those of the answer, so that they are not words of the source.
    expect(firstParts(chunks, from)).toEqual([
      {
        kind: 'text',
        text: 'ä ünö',
        citations: [
          { url: 'https://x.example', title: 'X', start: 2, end: 5 },
          { url: 'https://y.example', start: 2, end: 5 },
          { url: 'https://x.example', title: 'X' },
        ],
      },
    ])
    expect(from.notes.losses.codes).toEqual(['citations']) // there is no source of number 9
  })

  describe('reads what a source is:', () => {
    const uri = 'https://x.example/page'
    const redirect = 'https://redirect.example/1'
    const long = '😀'.repeat(3_000)
    const rows: readonly (readonly [string, object, object | undefined, readonly string[]])[] = [
      ['a web page', { web: { uri, title: 'X', domain: 'x.example' } }, { url: uri, title: 'X' }, []],
      [
        'a web page behind a redirect',
        { web: { uri: redirect, domain: 'x.example' } },
        { url: redirect, title: 'x.example' },
        [],
      ],
      [
        'a web page whose domain is lost',
        { web: { uri: redirect, title: 'X', domain: 'x.example' } },
        { url: redirect, title: 'X' },
        ['citations.domain'],
      ],
      [
        'an image',
        { image: { sourceUri: uri, imageUri: `${uri}.png`, title: 'X', domain: 'x.example' } },
        { url: uri, title: 'X' },
        ['citations.imageuri'],
      ],
      [
        'a place',
        {
          maps: {
            uri,
            title: 'X',
            text: 'A museum.',
            placeId: 'places/1',
            placeAnswerSources: { flagContentUri: 'u' },
          },
        },
        { url: uri, title: 'X', citedText: 'A museum.' },
        ['citations.placeid', 'citations.placeanswersources'],
      ],
      [
        'a document',
        { retrievedContext: { title: 'x.pdf', text: 'words', pageNumber: 3, fileSearchStore: 'fileSearchStores/1' } },
        { title: 'x.pdf', citedText: 'words' },
        ['citations.pagenumber'],
      ],
      [
        'a document with its words in a chunk',
        { retrievedContext: { documentName: 'projects/1', ragChunk: { text: 'words', pageSpan: { firstPage: 1 } } } },
        { title: 'projects/1', citedText: 'words' },
        ['citations.pagespan'],
      ],
      [
        'a long document',
        { retrievedContext: { title: 'x.pdf', text: `x${long}` } },
        { title: 'x.pdf', citedText: `x${long.slice(0, 4_094)}\uFFFD` },
        [],
      ],
      [
        'fields without content',
        { retrievedContext: { uri, title: 'X', text: '', pageNumber: 0, customMetadata: [], mediaId: '' } },
        { url: uri, title: 'X' },
        [],
      ],
      ['a source without a name', { image: { imageUri: uri } }, undefined, ['citations']],
      ['an unknown kind', { video: { uri } }, undefined, ['citations.video', 'citations']],
    ]
    test.each(rows)('%s', (_name, grounding, expected, losses) => {
      const support = { segment: { endIndex: 1 }, groundingChunkIndices: [0] }
      for (const groundingSupports of [[], [support]]) {
        const from = source()
        const groundingMetadata = { groundingChunks: [grounding], groundingSupports }
        const [part] = firstParts([chunk([{ text: 'x' }], { groundingMetadata, finishReason: 'STOP' })], from)!
        const place = groundingSupports.length > 0 ? { start: 0, end: 1 } : {}
        const citations = expected === undefined ? {} : { citations: [{ ...expected, ...place }] }
        expect(part).toEqual({ kind: 'text', text: 'x', ...citations } as never)
        expect(from.notes.losses.codes).toEqual([...losses])
      }
    })

    test('quoted sources, and how sure the model is', () => {
      const from = source()
      const groundingMetadata = {
        groundingChunks: [{ web: { uri, title: 'X' } }],
        groundingSupports: [{ segment: { endIndex: 1 }, groundingChunkIndices: [0], confidenceScores: [0.5] }],
      }
      const citations = [
        { startIndex: 0, endIndex: 1, uri: redirect, license: 'mit', publicationDate: { year: 2025 } },
        { startIndex: 0, endIndex: 1, license: 'mit' },
        { startIndex: 0, endIndex: 1, uri, license: '' },
      ]
      const more = { groundingMetadata, citationMetadata: { citations }, finishReason: 'STOP' }
      const place = { start: 0, end: 1 }
      expect(firstParts([chunk([{ text: 'x' }], more)], from)).toEqual([
        {
          kind: 'text',
          text: 'x',
          citations: [
            { url: uri, title: 'X', ...place },
            { url: redirect, ...place },
            { url: uri, ...place },
          ],
        },
      ])
      const lost = ['citations.confidencescores', 'citations.license', 'citations.publicationdate', 'citations']
      expect(from.notes.losses.codes).toEqual(lost)
    })
  })

  describe('finds cited words whose part has no number, or a wrong one:', () => {
    const code = { executableCode: { code: '1' } }
    const [hello, paris] = [{ text: 'Hello world. ' }, { text: 'Paris is in France.' }]
    const long = { text: 'x'.repeat(20_000) }
    /** The words that are cited of each text. */
    const rows: readonly (readonly [string, readonly object[], object, readonly (readonly string[])[]])[] = [
      ['in the first part', [hello, paris], { endIndex: 5, text: 'Hello' }, [['Hello']]],
      ['in the next part', [hello, paris], { startIndex: 0, endIndex: 5, text: 'Paris' }, [['Paris']]],
      ['in a part of its own', [{ text: 'Hm.' }, code, paris], { endIndex: 5, text: 'Paris' }, [[], ['Paris']]],
      ['beyond the kept text', [long, paris], { startIndex: 19_999, endIndex: 20_000, text: 'x' }, [['no place']]],
      ['nowhere', [hello, paris], { startIndex: 0, endIndex: 4, text: 'Rome' }, [['Hell']]],
      ['nowhere in a part', [hello, paris], { partIndex: 1, endIndex: 4, text: 'Rome' }, [['Pari']]],
      ['after a wrong number', [hello, paris], { partIndex: 1, endIndex: 5, text: 'Hello' }, [['Hello']]],
    ]
    const metadataOf = (segment: object): object => ({
      groundingMetadata: {
        groundingChunks: [{ web: { uri: 'https://x.example' } }],
        groundingSupports: [{ segment, groundingChunkIndices: [0] }],
      },
    })
    const citedIn = (answer: readonly object[]): unknown =>
      firstParts(answer)!
        .filter(part => part.kind === 'text')
        .map(({ text, citations = [] }) =>
          citations.map(({ start, end }) => (start === undefined ? 'no place' : text.slice(start, end))),
        )
    test.each(rows)('%s', (_name, parts, segment, expected) => {
      const metadata = metadataOf(segment)
      expect(citedIn([chunk(parts, metadata)])).toEqual(expected)
      expect(citedIn([chunk(parts), chunk([], { ...metadata, finishReason: 'STOP' })])).toEqual(expected)
    })

    test('beyond the kept text, as soon as the text ends', () => {
      const metadata = metadataOf({ startIndex: 19_999, endIndex: 20_000, text: 'x' })
      const chunks = [chunk([long], metadata), chunk([code]), chunk([paris], { finishReason: 'STOP' })]
      expect(citedIn(chunks)).toEqual([['no place'], []])
    })
  })

  test('reads log probabilities, images, and parts that only Google has', () => {
    const logprobsResult = {
      chosenCandidates: [{ token: 'x', logProbability: -1 }, { token: 'y' }],
      topCandidates: [{ candidates: [{ token: 'x', logProbability: -1 }] }],
    }
    const [text, image, code] = firstParts([
      chunk([{ text: 'x' }], { logprobsResult }),
      chunk([{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }, { executableCode: { code: '1' } }]),
    ])!
    expect(text).toMatchObject({ logprobs: [{ token: 'x', logprob: -1, top: [{ token: 'x', logprob: -1 }] }] })
    expect(image).toMatchObject({ kind: 'image', source: { at: 'inline', base64: 'AAAA' } })
    expect(code).toMatchObject({ kind: 'native', dialect: 'gemini', what: 'executableCode' })
  })

  const invalid: readonly unknown[] = [5, 'x', null]
  test.each(invalid)('refuses %j', json => {
    expect(() => read([json])).toThrow(Refusal)
  })

  test('reads any JSON as valid events or refuses it', () => {
    const names = [
      ...Object.keys(partFields),
      'candidates',
      'content',
      'parts',
      'index',
      'finishReason',
      'usageMetadata',
      'name',
      'args',
      'groundingMetadata',
      'groundingChunks',
      'groundingSupports',
      'segment',
      'groundingChunkIndices',
      'web',
      'uri',
      'promptFeedback',
      'logprobsResult',
      'chosenCandidates',
      'citationMetadata',
      'citations',
      'retrievedContext',
      'ragChunk',
      'image',
      'sourceUri',
      'urlContextMetadata',
      'urlMetadata',
      'responseId',
      'blockReason',
    ]
    const { tree } = fc.letrec(tie => ({
      tree: fc.oneof({ maxDepth: 6 }, fc.jsonValue(), tie('object'), fc.array(tie('tree'), { maxLength: 3 })),
      object: fc.dictionary(fc.constantFrom(...names), tie('tree'), { maxKeys: 4 }),
    }))
    const part = fc.dictionary(fc.constantFrom(...Object.keys(partFields)), tree, { maxKeys: 3 })
    const content = fc.record({ parts: fc.array(part, { maxLength: 4 }) })
    const likely = fc.record({ candidates: fc.array(fc.record({ content, index: fc.nat(2) })) })
    const [readings, events] = [new Readings(), new Readings()]
    fc.assert(
      fc.property(fc.array(fc.oneof(tree, likely), { maxLength: 4 }), chunks => {
        for (const json of chunks) readings.take(() => readFrame(JSON.stringify(json)))
        for (const json of chunks) readings.take(() => readAnswer(Buffer.from(JSON.stringify(json))))
        events.take(() => read(chunks))
      }),
      { numRuns: 300 },
    )
    expect([readings.read, events.read].map(Math.sign)).toEqual([1, 1])
  })

  test('reads 64 KiB of noise quickly', async () => {
    const noise = 'x'.repeat(65_536)
    await expectCheap(1_000, () => {
      readFrame(noise)
      readAnswer(Buffer.from(noise))
      read([chunk(Array.from({ length: 6_000 }, () => ({ text: 'x' })))])
    })
  })
})
