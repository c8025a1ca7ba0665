// Tests answers for callers: whole, streamed, and as one array.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyAnswer, anyEvents } from '../../../test/support/answers.ts'
import type { Answer, AnswerEvent, AnswerPart } from '../neutral/answer.ts'
import { collectAnswer, toEvents } from '../neutral/answer-collector.ts'
import type { Citation } from '../neutral/conversation.ts'
import { Losses } from '../neutral/losses.ts'
import { packReasoningState, unpackReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerTarget } from '../protocol.ts'
import { openArrayFraming } from './framing.ts'
import { removePackedState, UNSIGNED_CALL } from './packed-state.ts'
import { openEventReader } from './read-answer.ts'
import { readReasoningState } from './read-contents.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'
import { openEventWriter, writeWholeAnswer } from './write-answer.ts'

const newTarget = (): AnswerTarget => ({
  requestId: 'req_1',
  model: 'a/b',
  createdS: 1,
  wantsUsage: true,
  choices: 1,
  json: {},
  losses: new Losses(),
})

function streamed(events: readonly AnswerEvent[], target = newTarget()): string {
  const writer = openEventWriter(target)
  return events.map(event => writer.write(event)).join('') + writer.end()
}

type Body = { readonly candidates: readonly Candidate[]; readonly usageMetadata?: object }
type Candidate = Readonly<Record<string, unknown>> & { readonly content: { readonly parts?: readonly object[] } }

const chunksOf = (sse: string): readonly Body[] =>
  sse
    .split('\r\n\r\n')
    .slice(0, -1)
    .map(block => JSON.parse(block.slice('data: '.length)) as Body)

const answer: Answer = {
  id: 'x',
  choices: [
    {
      parts: [
        { kind: 'reasoning', text: 'hm', sealed: { form: 'signature', value: 'S', origin: 'o' } },
        { kind: 'text', text: 'Hello' },
        { kind: 'call', id: 'c', name: 'f', arguments: '{"a":12345678901234567890}' },
        { kind: 'call', id: 'd', name: 'g', arguments: 'free', custom: true },
      ],
      finish: 'calls',
    },
  ],
  usage: { input: 5, output: 3, cacheRead: 2, reasoning: 1 },
}
const signature = packReasoningState({ form: 'signature', value: 'S', origin: 'o' })

test('a plain answer is written', () => {
  const text = writeWholeAnswer(answer, newTarget())
  expect(text).toContain('"args":{"a":12345678901234567890}')
  expect(JSON.parse(text)).toEqual({
    candidates: [
      {
        content: {
          role: 'model',
          parts: [
            { text: 'hm', thought: true, thoughtSignature: signature },
            { text: 'Hello' },
            {
              functionCall: { id: 'c', name: 'f', args: { a: 12345678901234567890 } },
              thoughtSignature: UNSIGNED_CALL,
            },
            { functionCall: { id: 'd', name: 'g', args: { input: 'free' } } },
          ],
        },
        index: 0,
        finishReason: 'STOP',
      },
    ],
    usageMetadata: {
      promptTokenCount: 7,
      cachedContentTokenCount: 2,
      candidatesTokenCount: 3,
      thoughtsTokenCount: 1,
      totalTokenCount: 11,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 7 }],
      cacheTokensDetails: [{ modality: 'TEXT', tokenCount: 2 }],
    },
    modelVersion: 'a/b',
    responseId: 'req_1',
  })
})

describe('a stream', () => {
  const events: readonly AnswerEvent[] = [
    { kind: 'start' },
    { kind: 'open', index: 0, choice: 0, part: 'reasoning' },
    { kind: 'delta', index: 0, text: 'h' },
    { kind: 'delta', index: 0, text: 'm' },
    { kind: 'open', index: 1, choice: 0, part: 'call', id: 'c', name: 'f' },
    { kind: 'delta', index: 1, text: '{"a"' },
    { kind: 'close', index: 0, sealed: { form: 'signature', value: 'S', origin: 'o' } },
    { kind: 'delta', index: 1, text: ':1}' },
    { kind: 'open', index: 2, choice: 0, part: 'text' },
    { kind: 'delta', index: 2, text: 'yes' },
    { kind: 'close', index: 1 },
    { kind: 'close', index: 2 },
    { kind: 'finish', choice: 0, finish: 'calls' },
    { kind: 'usage', usage: { input: 1, output: 2 } },
  ]

  test('writes the parts in order, a call when it is complete, and the finish reason last', () => {
    const writer = openEventWriter(newTarget())
    const parts = events.map(event => chunksOf(writer.write(event)).map(body => body.candidates[0]!.content.parts))
    expect(parts.flat()).toEqual([
      [{ text: 'h', thought: true }],
      [{ text: 'm', thought: true }],
      [{ text: '', thought: true, thoughtSignature: signature }],
      [{ functionCall: { id: 'c', name: 'f', args: { a: 1 } }, thoughtSignature: UNSIGNED_CALL }],
      [{ text: 'yes' }],
    ])
    const [last, ...more] = chunksOf(writer.end())
    expect(last!.candidates).toMatchObject([{ finishReason: 'STOP', index: 0 }])
    expect(last!.usageMetadata).toMatchObject({ totalTokenCount: 3 })
    expect(more).toEqual([])
  })

  test('P11, P12: has data lines only, and no end marker', () => {
    const sse = streamed(events)
    for (const block of sse.split('\r\n\r\n').slice(0, -1)) expect(block).toMatch(/^data: \{.*\}$/)
    expect(sse).not.toContain('[DONE]')
    expect(sse.endsWith('\r\n\r\n')).toBe(true)
  })

  test('has a finish reason even if the answer is empty', () => {
    expect(chunksOf(streamed([{ kind: 'start' }]))).toMatchObject([{ candidates: [{ finishReason: 'OTHER' }] }])
  })

  test('leaves out a tool call with cut-off arguments', () => {
    const cutOff = (finish: 'calls' | 'length'): Answer => ({
      choices: [{ parts: [{ kind: 'call', id: 'c', name: 'f', arguments: '{"a":' }], finish }],
    })
    const target = newTarget()
    const [last] = chunksOf(streamed(toEvents(cutOff('calls')), target))
    expect(last!.candidates[0]).toMatchObject({ finishReason: 'MALFORMED_FUNCTION_CALL' })
    expect(target.losses.codes).toEqual(['tool_arguments'])
    const cut = JSON.parse(writeWholeAnswer(cutOff('length'), newTarget())) as Body
    expect(cut.candidates[0]).toMatchObject({ finishReason: 'MAX_TOKENS' })
  })

  test('refuses a tool call that does not end, so that it does not fill the memory', () => {
    const writer = openEventWriter(newTarget())
    writer.write({ kind: 'open', index: 0, choice: 0, part: 'call', id: 'c', name: 'f' })
    const piece = 'x'.repeat(100_000)
    const writeTooMuch = () => {
      for (let count = 0; count < 400; count++) writer.write({ kind: 'delta', index: 0, text: piece })
    }
    expect(writeTooMuch).toThrow('answer_too_large')
    const long = openEventWriter(newTarget())
    long.write({ kind: 'open', index: 0, choice: 0, part: 'text' })
    for (let count = 0; count < 100; count++) long.write({ kind: 'delta', index: 0, text: piece })
  })
})

test('citations have positions in bytes, and parts that Google does not have are losses', () => {
  const target = newTarget()
  const parts: readonly AnswerPart[] = [
    { kind: 'text', text: 'ä ünö', citations: [{ url: 'https://x.example', title: 'X', start: 2, end: 5 }] },
    { kind: 'native', dialect: 'other', what: 'web_search_call', value: {} },
  ]
  const body = JSON.parse(
    writeWholeAnswer({ choices: [{ parts, finish: 'stop_sequence', stopSequence: '!' }] }, target),
  ) as Body
  expect(body.candidates[0]).toMatchObject({
    finishReason: 'STOP',
    groundingMetadata: {
      groundingChunks: [{ web: { uri: 'https://x.example', title: 'X' } }],
      groundingSupports: [{ segment: { startIndex: 3, endIndex: 8, text: 'ünö' }, groundingChunkIndices: [0] }],
    },
  })
  expect([...target.losses.codes].sort()).toEqual(['stop_sequence', 'web_search_call'])
})

interface Grounding {
  readonly groundingChunks: readonly object[]
  readonly groundingSupports?: readonly {
    readonly segment: Segment
    readonly groundingChunkIndices: readonly number[]
  }[]
}
type Segment = Readonly<{ partIndex?: number; startIndex: number; endIndex: number; text?: string }>
type TextPiece = Readonly<{ text?: string; thought?: boolean; thoughtSignature?: string }>

/** The parts of one choice of a stream, as a client joins them: neighbouring texts are one part. */
function joinPieces(sse: string, choice = 0): readonly TextPiece[] {
  const joined: TextPiece[] = []
  const candidates = chunksOf(sse).flatMap(body => body.candidates.filter(({ index }) => index === choice))
  for (const part of candidates.flatMap(({ content }) => (content.parts ?? []) as TextPiece[])) {
    const last = joined.at(-1)
    const isNext = last?.text === undefined || part.text === undefined || last.thoughtSignature !== undefined
    if (isNext || last.thought !== part.thought) joined.push(part)
    else joined[joined.length - 1] = { ...part, text: last.text + part.text }
  }
  return joined
}
const groundingOf = (body: Body, choice = 0): Grounding =>
  (body.candidates.find(({ index }) => index === choice)?.groundingMetadata ?? { groundingChunks: [] }) as Grounding
const segmentsOf = (body: Body, choice = 0): readonly Segment[] =>
  (groundingOf(body, choice).groundingSupports ?? []).map(({ segment }) => segment)

describe('a citation names the part that is written:', () => {
  const lost: AnswerPart = { kind: 'native', dialect: 'other', what: 'web_search_call', value: {} }
  const cutCall: AnswerPart = { kind: 'call', id: 'c', name: 'f', arguments: '{"a":', isCut: true }
  const badCall: AnswerPart = { kind: 'call', id: 'c', name: 'f', arguments: '[1]' }
  const call: AnswerPart = { kind: 'call', id: 'c', name: 'f', arguments: '{}' }
  const thought: AnswerPart = { kind: 'reasoning', text: 'hm' }
  const empty: AnswerPart = { kind: 'text', text: '' }
  const intro: AnswerPart = { kind: 'text', text: 'Ä: ' }
  const paris: AnswerPart = {
    kind: 'text',
    text: 'Paris.',
    citations: [{ url: 'https://x.example', title: 'X', start: 0, end: 5 }],
  }
  const first: Segment = { startIndex: 0, endIndex: 5, text: 'Paris' }
  const second: Segment = { partIndex: 1, ...first }
  const rows: readonly (readonly [string, readonly AnswerPart[], Segment, Segment])[] = [
    ['after parts that Google does not have', [lost, lost], first, first],
    ['after a call that is cut off', [cutCall], first, first],
    ['after a call with bad arguments', [badCall], first, first],
    ['after an empty text', [empty], first, first],
    ['after a call', [lost, call], second, second],
    ['after thoughts that are joined', [thought, thought], second, second],
    // A stream has no sign between two texts, so that its reader sees one part.
    ['after another text', [intro, lost], second, { startIndex: 4, endIndex: 9, text: 'Paris' }],
  ]
  test.each(rows)('%s', (_name, before, plain, fromStream) => {
    const cited: Answer = { choices: [{ parts: [...before, paris], finish: 'stop' }] }
    expect(segmentsOf(JSON.parse(writeWholeAnswer(cited, newTarget())) as Body)).toEqual([plain])
    expect(segmentsOf(chunksOf(streamed(toEvents(cited))).at(-1)!)).toEqual([fromStream])
  })

  test('if it arrives before the parts in front of its text are written', () => {
    const events: readonly AnswerEvent[] = [
      { kind: 'start' },
      { kind: 'open', index: 0, choice: 0, part: 'call', id: 'c', name: 'f' },
      { kind: 'open', index: 1, choice: 0, part: 'text' },
      { kind: 'delta', index: 1, text: 'Paris.' },
      { kind: 'cite', index: 1, citation: { url: 'https://x.example', start: 0, end: 5 } },
      { kind: 'delta', index: 0, text: '{}' },
      { kind: 'close', index: 0 },
      { kind: 'close', index: 1 },
      { kind: 'finish', choice: 0, finish: 'stop' },
    ]
    expect(segmentsOf(chunksOf(streamed(events)).at(-1)!)).toEqual([second])
  })

  test('in any answer, with the words at that place', () => {
    let count = 0
    const check = (body: Body, choice: number, parts: readonly TextPiece[]): void => {
      for (const { partIndex = 0, startIndex, endIndex, text = '' } of segmentsOf(body, choice)) {
        const words = Buffer.from(parts[partIndex]!.text!).subarray(startIndex, endIndex).toString()
        expect(words).toBe(text)
        count++
      }
    }
    fc.assert(
      fc.property(anyEvents(), events => {
        const sse = streamed(events)
        const whole = JSON.parse(writeWholeAnswer(collectAnswer(events), newTarget())) as Body
        whole.candidates.forEach(({ content }, choice) => {
          check(whole, choice, (content.parts ?? []) as TextPiece[])
          check(chunksOf(sse).at(-1)!, choice, joinPieces(sse, choice))
        })
      }),
    )
    expect(count).toBeGreaterThan(0)
  })
})

describe('the words of a citation', () => {
  const writeCited = (text: string, citations: readonly Citation[]): Grounding => {
    const cited: Answer = { choices: [{ parts: [{ kind: 'text', text, citations }], finish: 'stop' }] }
    const whole = groundingOf(JSON.parse(writeWholeAnswer(cited, newTarget())) as Body)
    expect(groundingOf(chunksOf(streamed(toEvents(cited))).at(-1)!)).toEqual(whole)
    return whole
  }
  const url = 'https://x.example'

  test('are those of the answer; only a document can have words of the source', () => {
    const citations = [
      { url, title: 'X', citedText: 'from X', start: 2, end: 5 },
      { url, title: 'X', citedText: 'more from X', start: 2, end: 5 },
      { title: 'report.pdf', citedText: 'from the report', start: 2, end: 5 },
    ]
    expect(writeCited('ä ünö', citations)).toEqual({
      groundingChunks: [
        { web: { uri: url, title: 'X' } },
        { retrievedContext: { title: 'report.pdf', text: 'from the report' } },
      ],
      groundingSupports: [{ segment: { startIndex: 3, endIndex: 8, text: 'ünö' }, groundingChunkIndices: [0, 1] }],
    })
  })

  test('are the whole text if the citation has no positions', () => {
    const segment = { startIndex: 0, endIndex: 8, text: 'ä ünö' }
    expect(writeCited('ä ünö', [{ url, citedText: 'from X' }]).groundingSupports).toEqual([
      { segment, groundingChunkIndices: [0] },
    ])
  })

  test('are left out if the text is not kept so far, and no place is named outside it', () => {
    const long = 'ä'.repeat(20_000)
    const citations = [
      { url },
      { url, start: 19_000, end: 19_001 },
      { url, start: -2, end: 1 },
      { url, start: 2, end: 1 },
    ]
    expect(writeCited(long, citations)).toEqual({
      groundingChunks: [{ web: { uri: url, title: '' } }],
      groundingSupports: [{ segment: { startIndex: 0, endIndex: 40_000 }, groundingChunkIndices: [0] }],
    })
  })

  test('are left out if overlapping citations would repeat the text too often', () => {
    const citations = Array.from({ length: 256 }, (_, at) => ({ url, start: at, end: 10_000 }))
    const { groundingSupports = [] } = writeCited('x'.repeat(10_000), citations)
    const chars = groundingSupports.reduce((sum, { segment }) => sum + (segment.text?.length ?? 0), 0)
    expect([groundingSupports.length, chars > 50_000, chars <= 65_536]).toEqual([256, true, true])
  })
})

describe('P13: a stream as one array', () => {
  test('is valid JSON, also with an error and without events', () => {
    const framing = openArrayFraming()
    const text = framing.element('{"a":1}') + framing.element('{"b":2}') + framing.end()
    expect(text).toBe('[{"a":1}\n,\r\n{"b":2}\n]')
    expect(JSON.parse(text)).toEqual([{ a: 1 }, { b: 2 }])
    expect(openArrayFraming().end()).toBe('[]')
    expect(JSON.parse(openArrayFraming().error('{"error":{}}'))).toEqual([{ error: {} }])
  })
})

/** Whether a part is written. Tool calls whose arguments are not an object are left out. */
const isWritten = (part: AnswerPart): boolean =>
  part.kind !== 'call' || part.custom === true || /^\s*(?:\{|(?:null|\[\s*\])\s*$)/.test(part.arguments)

const calls = (original: Answer): readonly string[] =>
  original.choices.flatMap(({ parts }) =>
    parts.filter(isWritten).flatMap(part => (part.kind === 'call' ? [part.id] : [])),
  )
const texts = (original: Answer, kinds: readonly string[]): readonly string[] =>
  original.choices.map(({ parts }) => {
    const matching = parts.filter(part => kinds.includes(part.kind))
    return matching.map(part => ('text' in part ? part.text : '')).join('')
  })

function readBack(sse: string): Answer {
  const source = { origin: 'o', notes: { losses: new Losses(), renamed: new Map() }, mintCallId: () => 'm' }
  const reader = openEventReader(source)
  return collectAnswer([...chunksOf(sse).flatMap(body => reader.read(body)), ...reader.end()])
}

test('any valid neutral stream becomes a valid stream with the same content', () => {
  fc.assert(
    fc.property(anyEvents(), events => {
      const sse = streamed(events)
      const blocks = sse.split('\r\n\r\n').slice(0, -1)
      const kinds = blocks.map(block => readFrame(block.slice('data: '.length)).kind)
      expect(kinds.at(-1)).toBe('closing')
      for (const kind of kinds.slice(0, -1)) expect(['content', 'opening']).toContain(kind)
      const [expected, readAgain] = [collectAnswer(events), readBack(sse)]
      expect(readAgain.choices).toHaveLength(expected.choices.length)
      expect(calls(readAgain)).toEqual(calls(expected))
      expect(texts(readAgain, ['text'])).toEqual(texts(expected, ['text', 'refusal']))
      expect(texts(readAgain, ['reasoning'])).toEqual(texts(expected, ['reasoning']))
    }),
  )
})

test('a plain answer and its stream have the same content and all reasoning state', () => {
  fc.assert(
    fc.property(anyAnswer(), original => {
      const whole = writeWholeAnswer(original, newTarget())
      expect(readAnswer(Buffer.from(whole))).toBeDefined()
      const [plain, fromStream] = [readBack(`data: ${whole}\r\n\r\n`), readBack(streamed(toEvents(original)))]
      for (const kinds of [['text'], ['reasoning']]) expect(texts(plain, kinds)).toEqual(texts(fromStream, kinds))
      expect(calls(plain)).toEqual(calls(fromStream))
      const seals = original.choices.flatMap(({ parts }) =>
        parts.filter(isWritten).flatMap(part => ('sealed' in part && part.sealed ? [part.sealed] : [])),
      )
      const signatures = Array.from(whole.matchAll(/"thoughtSignature":"([^"]+)"/g), match => match[1])
      const found = signatures.flatMap(text => (text === UNSIGNED_CALL ? [] : unpackReasoningState(text)!))
      expect(found).toEqual(seals)
    }),
  )
})

test('P25: an unsigned call gets a placeholder that Google accepts and that no other provider takes for state', () => {
  const parts = [{ functionCall: { name: 'f', args: {} }, thoughtSignature: UNSIGNED_CALL }]
  const sent = removePackedState([{ role: 'model', parts }], { origin: 'here' })
  const signed = [{ functionCall: { name: 'f', args: {} }, thoughtSignature: 'skip_thought_signature_validator' }]
  expect(sent).toEqual([{ role: 'model', parts: signed }])
  expect(readReasoningState(UNSIGNED_CALL)).toBeUndefined()
})
