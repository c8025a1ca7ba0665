// Tests answers for callers: whole, streamed, and as one array.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyAnswer, anyEvents } from '../../../test/support/answers.ts'
import type { Answer, AnswerEvent, AnswerPart } from '../neutral/answer.ts'
import { collectAnswer, toEvents } from '../neutral/answer-collector.ts'
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

const ask = (): AnswerTarget => ({
  requestId: 'req_1',
  model: 'a/b',
  createdS: 1,
  wantsUsage: true,
  choices: 1,
  json: {},
  losses: new Losses(),
})

function streamed(events: readonly AnswerEvent[], to = ask()): string {
  const writer = openEventWriter(to)
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

test('a whole answer', () => {
  const text = writeWholeAnswer(answer, ask())
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
    const writer = openEventWriter(ask())
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

  test('an empty answer still has a finish reason', () => {
    expect(chunksOf(streamed([{ kind: 'start' }]))).toMatchObject([{ candidates: [{ finishReason: 'OTHER' }] }])
  })

  test('a call with cut-off arguments is left out', () => {
    const broken = (finish: 'calls' | 'length'): Answer => ({
      choices: [{ parts: [{ kind: 'call', id: 'c', name: 'f', arguments: '{"a":' }], finish }],
    })
    const to = ask()
    const [last] = chunksOf(streamed(toEvents(broken('calls')), to))
    expect(last!.candidates[0]).toMatchObject({ finishReason: 'MALFORMED_FUNCTION_CALL' })
    expect(to.losses.codes).toEqual(['tool_arguments'])
    const cut = JSON.parse(writeWholeAnswer(broken('length'), ask())) as Body
    expect(cut.candidates[0]).toMatchObject({ finishReason: 'MAX_TOKENS' })
  })

  test('a part that does not end does not fill the memory', () => {
    const writer = openEventWriter(ask())
    writer.write({ kind: 'open', index: 0, choice: 0, part: 'call', id: 'c', name: 'f' })
    const crumb = 'x'.repeat(100_000)
    const flood = () => {
      for (let crumbs = 0; crumbs < 400; crumbs++) writer.write({ kind: 'delta', index: 0, text: crumb })
    }
    expect(flood).toThrow('answer_too_large')
    const long = openEventWriter(ask())
    long.write({ kind: 'open', index: 0, choice: 0, part: 'text' })
    for (let crumbs = 0; crumbs < 100; crumbs++) long.write({ kind: 'delta', index: 0, text: crumb })
  })
})

test('citations have positions in bytes, and what they cannot express is a loss', () => {
  const to = ask()
  const parts: readonly AnswerPart[] = [
    { kind: 'text', text: 'ä ünö', citations: [{ url: 'https://x.example', title: 'X', start: 2, end: 5 }] },
    { kind: 'native', dialect: 'other', what: 'web_search_call', value: {} },
  ]
  const body = JSON.parse(
    writeWholeAnswer({ choices: [{ parts, finish: 'stop_sequence', stopSequence: '!' }] }, to),
  ) as Body
  expect(body.candidates[0]).toMatchObject({
    finishReason: 'STOP',
    groundingMetadata: {
      groundingChunks: [{ web: { uri: 'https://x.example', title: 'X' } }],
      groundingSupports: [{ segment: { startIndex: 3, endIndex: 8 }, groundingChunkIndices: [0] }],
    },
  })
  expect([...to.losses.codes].sort()).toEqual(['stop_sequence', 'web_search_call'])
})

describe('P13: one array', () => {
  test('of any events', () => {
    const framing = openArrayFraming()
    const text = framing.element('{"a":1}') + framing.element('{"b":2}') + framing.end()
    expect(text).toBe('[{"a":1}\n,\r\n{"b":2}\n]')
    expect(JSON.parse(text)).toEqual([{ a: 1 }, { b: 2 }])
    expect(openArrayFraming().end()).toBe('[]')
    expect(JSON.parse(openArrayFraming().error('{"error":{}}'))).toEqual([{ error: {} }])
  })
})

/** Calls whose arguments are not an object are left out. */
const isTold = (part: AnswerPart): boolean =>
  part.kind !== 'call' || part.custom === true || /^\s*(?:\{|null\s*$)/.test(part.arguments)

const calls = (given: Answer): readonly string[] =>
  given.choices.flatMap(({ parts }) => parts.filter(isTold).flatMap(part => (part.kind === 'call' ? [part.id] : [])))
const texts = (given: Answer, kinds: readonly string[]): readonly string[] =>
  given.choices.map(({ parts }) => {
    const told = parts.filter(part => kinds.includes(part.kind))
    return told.map(part => ('text' in part ? part.text : '')).join('')
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
      const [meant, back] = [collectAnswer(events), readBack(sse)]
      expect(back.choices).toHaveLength(meant.choices.length)
      expect(calls(back)).toEqual(calls(meant))
      expect(texts(back, ['text'])).toEqual(texts(meant, ['text', 'refusal']))
      expect(texts(back, ['reasoning'])).toEqual(texts(meant, ['reasoning']))
    }),
  )
})

test('a whole answer and its stream have the same content and all reasoning state', () => {
  fc.assert(
    fc.property(anyAnswer(), given => {
      const whole = writeWholeAnswer(given, ask())
      expect(readAnswer(Buffer.from(whole))).toBeDefined()
      const [once, streams] = [readBack(`data: ${whole}\r\n\r\n`), readBack(streamed(toEvents(given)))]
      for (const kinds of [['text'], ['reasoning']]) expect(texts(once, kinds)).toEqual(texts(streams, kinds))
      expect(calls(once)).toEqual(calls(streams))
      const seals = given.choices.flatMap(({ parts }) =>
        parts.filter(isTold).flatMap(part => ('sealed' in part && part.sealed ? [part.sealed] : [])),
      )
      const signatures = Array.from(whole.matchAll(/"thoughtSignature":"([^"]+)"/g), match => match[1])
      const found = signatures.flatMap(text => (text === UNSIGNED_CALL ? [] : unpackReasoningState(text)!))
      expect(found).toEqual(seals)
    }),
  )
})

test('P25: an unsigned call gets a placeholder that Google accepts and that no other provider takes for state', () => {
  const parts = [{ functionCall: { name: 'f', args: {} }, thoughtSignature: UNSIGNED_CALL }]
  const sent = removePackedState({ contents: [{ role: 'model', parts }] }, { origin: 'here' })
  const signed = [{ functionCall: { name: 'f', args: {} }, thoughtSignature: 'skip_thought_signature_validator' }]
  expect(sent.contents).toEqual([{ role: 'model', parts: signed }])
  expect(readReasoningState(UNSIGNED_CALL)).toBeUndefined()
})
