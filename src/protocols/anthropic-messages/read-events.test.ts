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
import { lawful } from '../../../test/support/lawful.ts'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { AnswerEvent } from '../neutral/answer.ts'
import { collectAnswer } from '../neutral/answer-collector.ts'
import { unpackReasoningState } from '../neutral/reasoning-state.ts'
import type { Json } from '../request/json-type.ts'
import { codec } from './codec.ts'

const golden = (name: string) => readFileSync(`${import.meta.dir}/../../../test/golden/anthropic.${name}`, 'utf8')

describe('golden', () => {
  const whole = codec.readWholeAnswer(JSON.parse(golden('json')), sourceOf())
  const events = readAll(framesOf(golden('sse')))

  test('whole and streamed answers are read the same', () => {
    lawful(events)
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

  test('written back it is the same, and its reasoning state names its origin', () => {
    const json = JSON.parse(codec.writeWholeAnswer(whole, askOf())) as { content: Json[]; usage: Json }
    const original = JSON.parse(golden('json')) as { content: Json[]; usage: Json }
    const [thought, ...content] = json.content
    expect(unpackReasoningState(thought!.signature)).toEqual({ origin: 'here', form: 'signature', value: 'EqQB' })
    expect(content).toEqual(original.content.slice(1))
    expect(json).toMatchObject({ id: 'msg_1', model: 'a/b', stop_reason: 'tool_use', stop_sequence: null })
    expect(json.usage).toEqual({ ...original.usage })
    expect(assembled(framesOf(writeAll(events))).content).toEqual(json.content)
  })
})

describe("an upstream's stream", () => {
  const start = { type: 'message_start', message: { id: 'm', usage: { input_tokens: 5, output_tokens: 1 } } }
  const begin = (index: number, block: object) => ({ type: 'content_block_start', index, content_block: block })
  const grow = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta })
  const stop = (index: number) => ({ type: 'content_block_stop', index })
  const done = (reason: string, more: object = {}) => {
    return { type: 'message_delta', delta: { stop_reason: reason, ...more } }
  }
  const words = (text: string) => ({ type: 'text_delta', text })
  const json = (text: string) => ({ type: 'input_json_delta', partial_json: text })
  const use = (id: string, input: object = {}) => ({ type: 'tool_use', id, name: 'f', input })

  const call = (args: string, id = 'a') => ({ kind: 'call', id, name: 'f', arguments: args })
  const said = (text: string) => ({ kind: 'text', text })

  test.each<readonly [string, readonly object[], readonly object[], string]>([
    ['without its start', [grow(0, words('x')), done('end_turn')], [said('x')], 'stop'],
    [
      'without stops',
      [start, begin(0, { type: 'text', text: '' }), grow(0, words('x')), begin(1, use('a'))],
      [said('x'), call('{}')],
      'other',
    ],
    ['without a reason', [start, grow(0, words('x'))], [said('x')], 'other'],
    ['with text at once', [start, begin(0, { type: 'text', text: 'x' }), stop(0)], [said('x')], 'other'],
    ['with an empty text', [start, begin(0, { type: 'text', text: '' }), stop(0), done('end_turn')], [], 'stop'],
    ['with input at once', [start, begin(0, use('a', { b: 1 })), stop(0)], [call('{"b":1}')], 'other'],
    [
      'with input told twice',
      [start, begin(0, use('a', { b: 1 })), grow(0, json('{"b":2}')), stop(0)],
      [call('{"b":2}')],
      'other',
    ],
    [
      'with a call without a name for it',
      [start, begin(0, use('')), stop(0), done('tool_use')],
      [call('{}', 'minted_0')],
      'calls',
    ],
    ['whose calls say that they end', [start, begin(0, use('a')), stop(0), done('end_turn')], [call('{}')], 'calls'],
    [
      'P3: with blocks side by side',
      [
        start,
        begin(0, use('a')),
        begin(1, use('b')),
        grow(1, json('{"b":')),
        grow(0, json('{"a":1}')),
        grow(1, json('1}')),
        stop(1),
        stop(0),
        done('tool_use'),
      ],
      [call('{"a":1}'), call('{"b":1}', 'b')],
      'calls',
    ],
    [
      'P4: that starts a block twice',
      [start, begin(0, use('a')), begin(0, use('b')), stop(0), stop(0)],
      [call('{}'), call('{}', 'b')],
      'other',
    ],
    [
      'whose block changes',
      [start, grow(0, { type: 'thinking_delta', thinking: 't' }), grow(0, words('x'))],
      [{ kind: 'reasoning', text: 't' }, said('x')],
      'other',
    ],
    [
      'P24: with a signature alone, in pieces',
      [
        start,
        begin(0, { type: 'thinking', thinking: '', signature: '' }),
        grow(0, { type: 'signature_delta', signature: 's' }),
        grow(0, { type: 'signature_delta', signature: 't' }),
        stop(0),
      ],
      [{ kind: 'reasoning', text: '', sealed: { origin: 'here', form: 'signature', value: 'st' } }],
      'other',
    ],
    [
      'with hidden thoughts',
      [start, begin(0, { type: 'redacted_thinking', data: 'd' }), stop(0)],
      [{ kind: 'reasoning', text: '', sealed: { origin: 'here', form: 'redacted', value: 'd' } }],
      'other',
    ],
    [
      'with a search',
      [
        start,
        begin(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
        grow(0, json('{"query":"x"}')),
        stop(0),
        done('pause_turn'),
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
      'with sources',
      [
        start,
        grow(0, words('x')),
        grow(0, { type: 'citations_delta', citation: { type: 'x', url: 'u', title: 't', cited_text: 'c' } }),
      ],
      [{ ...said('x'), citations: [{ url: 'u', title: 't', citedText: 'c' }] }],
      'other',
    ],
    [
      'P30: that refuses, and says why',
      [start, done('refusal', { stop_details: { explanation: 'no' } })],
      [{ kind: 'refusal', text: 'no' }],
      'filtered',
    ],
    [
      'of a later day',
      [start, { type: 'x' }, grow(0, { type: 'x' }), begin(1, { type: 'x', y: 1 }), stop(1)],
      [{ kind: 'native', dialect: 'anthropic-messages', what: 'x', value: { type: 'x', y: 1 } }],
      'other',
    ],
    ['that goes on after its end', [start, done('end_turn'), grow(0, words('x'))], [said('x')], 'stop'],
  ])('%s', (...row) => {
    const [, frames, parts, finish] = row
    const events = readAll(frames)
    lawful(events)
    const { choices } = collectAnswer(events)
    expect(choices.map(choice => [choice.parts, choice.finish] as unknown)).toEqual([[parts, finish]])
  })

  test('reports its usage as it grows', () => {
    const end = { ...done('end_turn'), usage: { output_tokens: 9 } }
    const usages = readAll([start, end]).filter(event => event.kind === 'usage')
    expect(usages.map(({ usage }) => usage)).toEqual([
      { input: 5, output: 1 },
      { input: 5, output: 9 },
    ])
  })

  test('the arguments of the schema tool are the answer', () => {
    const source = () => sourceOf({ schemaTool: 'f' })
    const frames = [start, begin(0, use('a')), grow(0, json('{"b":')), grow(0, json('1}')), stop(0), done('tool_use')]
    const streamed = collectAnswer(readAll(frames, source()))
    expect(streamed.choices).toEqual([{ parts: [{ kind: 'text', text: '{"b":1}' }], finish: 'stop' }])
    const whole = codec.readWholeAnswer({ content: [use('a', { b: 1 })], stop_reason: 'tool_use' }, source())
    expect(whole.choices).toEqual(streamed.choices)
  })

  test("tool calls have the caller's names and kinds again", () => {
    const source = () => sourceOf({ renamed: new Map([['f', 'a.b']]), wrapped: new Set(['f']) })
    const frames = [start, begin(0, use('a')), grow(0, json('{"input":"free ')), grow(0, json('text"}')), stop(0)]
    const part = { kind: 'call', id: 'a', name: 'a.b', arguments: 'free text', custom: true }
    expect(collectAnswer(readAll(frames, source())).choices[0]!.parts).toEqual([part as never])
    const whole = codec.readWholeAnswer({ content: [use('a', { input: 'free text' })] }, source())
    expect(whole.choices[0]!.parts).toEqual([part as never])
  })

  test('invalid answers are refused', () => {
    expect(() => codec.readWholeAnswer({ content: 5 }, sourceOf())).toThrow(Refusal)
  })

  test('does not fill the memory', () => {
    const signature = { type: 'signature_delta', signature: 'x'.repeat(bounds.frameBytesMax) }
    expect(() => readAll([grow(0, signature), grow(0, signature)])).toThrow('answer_too_large')
  })

  test('is read, or refused, whatever it is', () => {
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
    const odd = fc.constantFrom<unknown>('', 'x', '{', '{}', null, 5)
    const value = fc.oneof(odd, fc.dictionary(fc.string(), fc.string()))
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
        lawful(events)
        assembledLoosely(writeAll(events))
      }),
      { numRuns: 1_000 },
    )
  })
})
