// Tests how answers of an upstream are read, whole and streamed, whatever it sends.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import {
  askOf,
  assembled,
  assembledLoosely,
  framesOf,
  readAll,
  sourceOf,
  writeAll,
} from '../../../test/support/anthropic-answers.ts'
import { assertCompleteStream } from '../../../test/support/complete-stream.ts'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { AnswerEvent } from '../neutral/answer.ts'
import { collectAnswer } from '../neutral/answer-collector.ts'
import { unpackReasoningState } from '../neutral/reasoning-state.ts'
import type { Json } from '../request/json-type.ts'
import { codec } from './codec.ts'

const golden = (name: string) => readFileSync(`${import.meta.dir}/../../../test/golden/anthropic.${name}`, 'utf8')

describe('the golden answer', () => {
  const whole = codec.readWholeAnswer(JSON.parse(golden('json')), sourceOf())
  const events = readAll(framesOf(golden('sse')))

  test('is read the same whole and streamed', () => {
    assertCompleteStream(events)
    expect(collectAnswer(events)).toEqual(whole)
    expect(whole).toEqual({
      id: 'msg_01',
      model: 'anthropic/claude-x',
      serviceClass: 'standard',
      choices: [
        {
          parts: [
            { kind: 'reasoning', text: 'Let me think.', sealed: { origin: 'here', form: 'signature', value: 'EqQB' } },
            { kind: 'text', text: 'Hello world' },
            { kind: 'call', id: 'toolu_a', name: 'get_weather', arguments: '{"city":"Paris"}' },
          ],
          finish: 'calls',
        },
      ],
      usage: { input: 40, cacheRead: 60, output: 30, reasoning: 10 },
    })
  })

  test('is the same when it is written back, and its reasoning state names its origin', () => {
    const json = JSON.parse(codec.writeWholeAnswer(whole, askOf())) as { content: Json[]; usage: Json }
    const original = JSON.parse(golden('json')) as { content: Json[]; usage: Json }
    const [thinking, ...content] = json.content
    expect(unpackReasoningState(thinking!.signature)).toEqual({ origin: 'here', form: 'signature', value: 'EqQB' })
    expect(content).toEqual(original.content.slice(1))
    expect(json).toMatchObject({ id: 'msg_1', model: 'a/b', stop_reason: 'tool_use', stop_sequence: null })
    expect(json.usage).toEqual({ ...original.usage })
    expect(assembled(framesOf(writeAll(events))).content).toEqual(json.content)
  })
})

describe("an upstream's stream", () => {
  const start = { type: 'message_start', message: { id: 'm', usage: { input_tokens: 5, output_tokens: 1 } } }
  const startBlock = (index: number, block: object) => ({ type: 'content_block_start', index, content_block: block })
  const blockDelta = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta })
  const stop = (index: number) => ({ type: 'content_block_stop', index })
  const messageDelta = (reason: string, more: object = {}) => {
    return { type: 'message_delta', delta: { stop_reason: reason, ...more } }
  }
  const textDelta = (text: string) => ({ type: 'text_delta', text })
  const inputDelta = (text: string) => ({ type: 'input_json_delta', partial_json: text })
  const toolUse = (id: string, input: object = {}) => ({ type: 'tool_use', id, name: 'f', input })

  const callPart = (args: string, id = 'a') => ({ kind: 'call', id, name: 'f', arguments: args })
  const textPart = (text: string) => ({ kind: 'text', text })

  test.each<readonly [string, readonly object[], readonly object[], string]>([
    ['without its start event', [blockDelta(0, textDelta('x')), messageDelta('end_turn')], [textPart('x')], 'stop'],
    [
      'without stop events of its blocks',
      [
        ...[start, startBlock(0, { type: 'text', text: '' }), blockDelta(0, textDelta('x'))],
        ...[startBlock(1, toolUse('a')), messageDelta('tool_use')],
      ],
      [textPart('x'), callPart('{}')],
      'calls',
    ],
    ['without a stop reason', [start, blockDelta(0, textDelta('x'))], [textPart('x')], 'other'],
    [
      'with text in the start event of a block',
      [start, startBlock(0, { type: 'text', text: 'x' }), stop(0)],
      [textPart('x')],
      'other',
    ],
    [
      'with an empty text block',
      [start, startBlock(0, { type: 'text', text: '' }), stop(0), messageDelta('end_turn')],
      [],
      'stop',
    ],
    [
      'with the input of a tool in the start event of a block',
      [start, startBlock(0, toolUse('a', { b: 1 })), stop(0), messageDelta('tool_use')],
      [callPart('{"b":1}')],
      'calls',
    ],
    [
      'with the input of a tool in the start event and in a delta',
      [
        ...[start, startBlock(0, toolUse('a', { b: 1 })), blockDelta(0, inputDelta('{"b":2}')), stop(0)],
        messageDelta('tool_use'),
      ],
      [callPart('{"b":2}')],
      'calls',
    ],
    [
      'with a tool call without an id',
      [start, startBlock(0, toolUse('')), stop(0), messageDelta('tool_use')],
      [callPart('{}', 'minted_0')],
      'calls',
    ],
    [
      'with tool calls and the stop reason end_turn',
      [start, startBlock(0, toolUse('a')), stop(0), messageDelta('end_turn')],
      [callPart('{}')],
      'calls',
    ],
    [
      'P3: with blocks that are open at the same time',
      [
        start,
        startBlock(0, toolUse('a')),
        startBlock(1, toolUse('b')),
        blockDelta(1, inputDelta('{"b":')),
        blockDelta(0, inputDelta('{"a":1}')),
        blockDelta(1, inputDelta('1}')),
        stop(1),
        stop(0),
        messageDelta('tool_use'),
      ],
      [callPart('{"a":1}'), callPart('{"b":1}', 'b')],
      'calls',
    ],
    [
      'with a tool call that is cut before its first argument',
      [start, startBlock(0, toolUse('a')), stop(0), startBlock(1, toolUse('b')), stop(1), messageDelta('max_tokens')],
      [callPart('{}'), { ...callPart('', 'b'), isCut: true }],
      'length',
    ],
    [
      'with a tool call that is cut in its arguments',
      [start, startBlock(0, toolUse('a')), blockDelta(0, inputDelta('{"b":')), stop(0), messageDelta('max_tokens')],
      [{ ...callPart('{"b":'), isCut: true }],
      'length',
    ],
    [
      'with a tool call before the content that is cut',
      [
        ...[start, startBlock(0, toolUse('a')), stop(0), startBlock(1, { type: 'text', text: 'x' }), stop(1)],
        messageDelta('max_tokens'),
      ],
      [callPart('{}'), textPart('x')],
      'length',
    ],
    [
      'P4: that starts a block twice',
      [start, startBlock(0, toolUse('a')), startBlock(0, toolUse('b')), stop(0), stop(0), messageDelta('tool_use')],
      [callPart('{}'), callPart('{}', 'b')],
      'calls',
    ],
    [
      'with a block that changes its kind',
      [start, blockDelta(0, { type: 'thinking_delta', thinking: 't' }), blockDelta(0, textDelta('x'))],
      [{ kind: 'reasoning', text: 't' }, textPart('x')],
      'other',
    ],
    [
      'P24: with a signature in pieces and no thinking text',
      [
        start,
        startBlock(0, { type: 'thinking', thinking: '', signature: '' }),
        blockDelta(0, { type: 'signature_delta', signature: 's' }),
        blockDelta(0, { type: 'signature_delta', signature: 't' }),
        stop(0),
      ],
      [{ kind: 'reasoning', text: '', sealed: { origin: 'here', form: 'signature', value: 'st' } }],
      'other',
    ],
    [
      'with redacted thinking',
      [start, startBlock(0, { type: 'redacted_thinking', data: 'd' }), stop(0)],
      [{ kind: 'reasoning', text: '', sealed: { origin: 'here', form: 'redacted', value: 'd' } }],
      'other',
    ],
    [
      'with a search',
      [
        start,
        startBlock(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
        blockDelta(0, inputDelta('{"query":"x"}')),
        stop(0),
        messageDelta('pause_turn'),
      ],
      [
        {
          kind: 'native',
          dialect: 'anthropic-messages',
          what: 'server_tool_use',
          value: { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
        },
      ],
      'paused',
    ],
    [
      'with citations',
      [
        start,
        blockDelta(0, textDelta('x')),
        blockDelta(0, { type: 'citations_delta', citation: { type: 'x', url: 'u', title: 't', cited_text: 'c' } }),
      ],
      [{ ...textPart('x'), citations: [{ url: 'u', title: 't', citedText: 'c' }] }],
      'other',
    ],
    [
      'P30: with a refusal and its explanation',
      [start, messageDelta('refusal', { stop_details: { explanation: 'no' } })],
      [{ kind: 'refusal', text: 'no' }],
      'filtered',
    ],
    [
      'with unknown events and blocks',
      [start, { type: 'x' }, blockDelta(0, { type: 'x' }), startBlock(1, { type: 'x', y: 1 }), stop(1)],
      [{ kind: 'native', dialect: 'anthropic-messages', what: 'x', value: { type: 'x', y: 1 } }],
      'other',
    ],
    [
      'with content after its stop reason',
      [start, messageDelta('end_turn'), blockDelta(0, textDelta('x'))],
      [textPart('x')],
      'stop',
    ],
  ])('is read %s', (...row) => {
    const [, frames, parts, finish] = row
    const events = readAll(frames)
    assertCompleteStream(events)
    const { choices } = collectAnswer(events)
    expect(choices.map(choice => [choice.parts, choice.finish] as unknown)).toEqual([[parts, finish]])
  })

  test('sends a call to the caller when the call is complete, and not at the end of the answer', () => {
    const reader = codec.openEventReader(sourceOf())
    const kindsOf = (frame: object) => reader.read(frame).map(({ kind }) => kind)
    expect([start, startBlock(0, toolUse('a')), stop(0)].map(kindsOf)).toEqual([['start', 'usage'], ['open'], []])
    expect(kindsOf(startBlock(1, toolUse('b')))).toEqual(['delta', 'close', 'open'])
    expect([stop(1), messageDelta('tool_use')].map(kindsOf)).toEqual([[], ['delta', 'close']])
  })

  test('sends a call at once if another block goes on', () => {
    const reader = codec.openEventReader(sourceOf())
    const kindsOf = (frame: object) => reader.read(frame).map(({ kind }) => kind)
    for (const frame of [start, startBlock(0, toolUse('a')), startBlock(1, { type: 'text', text: '' })])
      reader.read(frame)
    expect(kindsOf(stop(0))).toEqual(['delta', 'close'])
    expect(kindsOf(blockDelta(1, textDelta('x')))).toContain('delta')
  })

  test('keeps a call without arguments if the reason of its end is missing or unknown', () => {
    for (const end of [[], [messageDelta('weird')]]) {
      const frames = [start, startBlock(0, toolUse('a')), stop(0), ...end]
      expect<unknown>(collectAnswer(readAll(frames)).choices[0]!.parts).toEqual([callPart('{}')])
    }
  })

  test('has no free text and no answer by a schema that the model did not write', () => {
    const parts = (over: object, input: string, reason = 'max_tokens') => {
      const frames = [start, startBlock(0, toolUse('a')), blockDelta(0, inputDelta(input)), stop(0)]
      return collectAnswer(readAll([...frames, messageDelta(reason)], sourceOf(over))).choices[0]!.parts
    }
    const wrapped = { wrapped: new Set(['f']) }
    expect(parts(wrapped, '{"input":"ha')).toEqual([])
    expect<unknown>(parts(wrapped, '{"input":"half"}')).toEqual([{ ...callPart('half'), custom: true }])
    expect(parts({ schemaTool: 'f' }, '')).toEqual([])
    expect<unknown>(parts({ schemaTool: 'f' }, '', 'tool_use')).toEqual([textPart('{}')])
  })

  test('reports its usage as the counts grow', () => {
    const end = { ...messageDelta('end_turn'), usage: { output_tokens: 9 } }
    const usages = readAll([start, end]).filter(event => event.kind === 'usage')
    expect(usages.map(({ usage }) => usage)).toEqual([
      { input: 5, output: 1 },
      { input: 5, output: 9 },
    ])
  })

  test('has the arguments of the schema tool as its text', () => {
    const source = () => sourceOf({ schemaTool: 'f' })
    const frames = [
      start,
      startBlock(0, toolUse('a')),
      blockDelta(0, inputDelta('{"b":')),
      blockDelta(0, inputDelta('1}')),
      stop(0),
      messageDelta('tool_use'),
    ]
    const streamed = collectAnswer(readAll(frames, source()))
    expect(streamed.choices).toEqual([{ parts: [{ kind: 'text', text: '{"b":1}' }], finish: 'stop' }])
    const whole = codec.readWholeAnswer({ content: [toolUse('a', { b: 1 })], stop_reason: 'tool_use' }, source())
    expect(whole.choices).toEqual(streamed.choices)
  })

  test("has the caller's names and kinds of its tools again", () => {
    const source = () => sourceOf({ renamed: new Map([['f', 'a.b']]), wrapped: new Set(['f']) })
    const frames = [
      start,
      startBlock(0, toolUse('a')),
      blockDelta(0, inputDelta('{"input":"free ')),
      blockDelta(0, inputDelta('text"}')),
      stop(0),
    ]
    const part = { kind: 'call', id: 'a', name: 'a.b', arguments: 'free text', custom: true }
    expect(collectAnswer(readAll(frames, source())).choices[0]!.parts).toEqual([part as never])
    const whole = codec.readWholeAnswer({ content: [toolUse('a', { input: 'free text' })] }, source())
    expect(whole.choices[0]!.parts).toEqual([part as never])
  })

  test('and whole answers are refused if they are invalid', () => {
    expect(() => codec.readWholeAnswer({ content: 5 }, sourceOf())).toThrow(Refusal)
  })

  test('with too long a signature is refused, so that it does not fill the memory', () => {
    const signature = { type: 'signature_delta', signature: 'x'.repeat(bounds.frameBytesMax) }
    expect(() => readAll([blockDelta(0, signature), blockDelta(0, signature)])).toThrow('answer_too_large')
  })

  test('with any events is read or refused', () => {
    const index = fc.constantFrom<unknown>(0, 1, 2, undefined, 'x')
    const type = fc.constantFrom(
      'text',
      'thinking',
      'tool_use',
      'redacted_thinking',
      'server_tool_use',
      'text_delta',
      'thinking_delta',
      'signature_delta',
      'input_json_delta',
      'citations_delta',
      'compaction_delta',
      'compaction',
    )
    const invalid = fc.constantFrom<unknown>('', 'x', '{', '{}', null, 5)
    const value = fc.oneof(invalid, fc.dictionary(fc.string(), fc.string()))
    const name = fc.constantFrom(
      'text',
      'thinking',
      'signature',
      'data',
      'name',
      'id',
      'input',
      'partial_json',
      'citation',
      'content',
    )
    const inner = fc.tuple(type, fc.dictionary(name, value)).map(([t, fields]) => ({ type: t, ...fields }))
    const frame = fc.record({
      type: fc.constantFrom(
        'message_start',
        'content_block_start',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
      ),
      index,
      content_block: inner,
      delta: fc.oneof(inner, fc.record({ stop_reason: value })),
      message: fc.constantFrom({}, { id: 5, usage: {} }, { usage: { input_tokens: 1, output_tokens: 1 } }),
    })
    fc.assert(
      fc.property(fc.array(fc.oneof({ weight: 9, arbitrary: frame }, fc.anything())), frames => {
        let events: AnswerEvent[]
        try {
          events = readAll(frames)
        } catch (fault) {
          expect(fault).toBeInstanceOf(Refusal)
          return
        }
        assertCompleteStream(events)
        assembledLoosely(writeAll(events))
      }),
      { numRuns: 1_000 },
    )
  })
})
