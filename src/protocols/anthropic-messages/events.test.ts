// Answers of this dialect, whole and streamed: read whatever an upstream sends, written so that the SDKs take them.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { anyAnswer, anyEvents } from '../../../test/support/answers.ts'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Answer, AnswerEvent, AnswerPart } from '../answer.ts'
import { collectAnswer, eventsOf, lawful } from '../answer-collector.ts'
import type { Json } from '../checks.ts'
import type { Part } from '../conversation.ts'
import { Losses } from '../losses.ts'
import type { AnswerAsk, AnswerSource, TranslationNotes } from '../protocol.ts'
import { unpackSealed } from '../sealed.ts'
import { codec } from './codec.ts'
import { readConversation } from './conversation-reader.ts'
import { readCall } from './request.ts'

const golden = (name: string) => readFileSync(`${import.meta.dir}/../../../test/golden/anthropic.${name}`, 'utf8')

function sourceOf(over: Partial<TranslationNotes> = {}): AnswerSource {
  let minted = 0
  const notes = { losses: new Losses(), renamed: new Map<string, string>(), ...over }
  return { origin: 'here', notes, mintCallId: () => `minted_${minted++}` }
}

const askOf = (): AnswerAsk => ({
  ...{ requestId: 'req_1', model: 'a/b', createdS: 1, wantsUsage: true, choices: 1, json: {}, losses: new Losses() },
})

/** The data of the events of a stream, each of which must bear its name. */
function framesOf(sse: string): Json[] {
  expect(sse === '' || sse.endsWith('\n\n')).toBe(true)
  return sse.split('\n\n').slice(0, -1).map(block => {
    const [event, data, ...rest] = block.split('\n')
    const json = JSON.parse(data!.replace(/^data: /, '')) as Json
    expect([event, rest]).toEqual([`event: ${json.type as string}`, []])
    return json
  })
}

function readAll(frames: readonly unknown[], source = sourceOf()): AnswerEvent[] {
  const reader = codec.openReader(source)
  return [...frames.flatMap(frame => reader.read(frame)), ...reader.end(), ...reader.end()]
}

function writeAll(events: readonly AnswerEvent[], ask = askOf()): string {
  const writer = codec.openWriter(ask)
  return events.map(event => writer.write(event)).join('') + writer.end() + writer.end()
}

/** The law of a stream of this dialect; gives what the SDKs make of it. */
function assembled(frames: readonly Json[]): Json {
  const [start, ...rest] = frames
  expect(start!.type).toBe('message_start')
  expect(rest.slice(-2).map(({ type }) => type)).toEqual(['message_delta', 'message_stop'])
  const content: Json[] = []
  let open: Record<string, unknown> | undefined
  let input = ''
  for (const { type, index, content_block: block, delta } of rest.slice(0, -2)) {
    expect(index).toBe(content.length)
    if (type === 'content_block_start') {
      expect(open).toBeUndefined()
      open = { ...(block as Json) }
      input = ''
    } else if (type === 'content_block_delta') {
      const grown = delta as Record<string, string>
      if (grown.type === 'text_delta') open!.text += grown.text!
      else if (grown.type === 'thinking_delta') open!.thinking += grown.thinking!
      else if (grown.type === 'signature_delta') open!.signature = grown.signature
      else if (grown.type === 'input_json_delta') input += grown.partial_json!
      else open!.citations = [...((open!.citations as Json[] | null) ?? []), grown.citation]
    } else {
      expect(type).toBe('content_block_stop')
      if (open!.type === 'tool_use') open!.input = JSON.parse(input)
      content.push(open!)
      open = undefined
    }
  }
  expect(open).toBeUndefined()
  const { delta, usage } = rest.at(-2) as Record<string, Json>
  const message = start!.message as Json
  return { ...message, content, ...delta, usage: { ...(message.usage as Json), ...usage } }
}

describe('golden', () => {
  const whole = codec.readWhole(JSON.parse(golden('json')), sourceOf())
  const events = readAll(framesOf(golden('sse')))

  test('whole is what streamed is', () => {
    lawful(events)
    expect(collectAnswer(events)).toEqual(whole)
    expect(whole).toEqual({
      ...{ id: 'msg_01', model: 'anthropic/claude-x', serviceClass: 'standard' },
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

  test('written back it says the same, and its state says whose it is', () => {
    const json = JSON.parse(codec.writeWhole(whole, askOf())) as { content: Json[]; usage: Json }
    const original = JSON.parse(golden('json')) as { content: Json[]; usage: Json }
    const [thought, ...content] = json.content
    expect(unpackSealed(thought!.signature)).toEqual({ origin: 'here', form: 'signature', value: 'EqQB' })
    expect(content).toEqual(original.content.slice(1))
    expect(json).toMatchObject({ id: 'msg_1', model: 'a/b', stop_reason: 'tool_use', stop_sequence: null })
    expect(json.usage).toEqual({ ...original.usage })
    expect(assembled(framesOf(writeAll(events))).content).toEqual(json.content)
  })
})

describe('an upstream\'s stream', () => {
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
    ['without stops', [start, begin(0, { type: 'text', text: '' }), grow(0, words('x')), begin(1, use('a'))], [
      ...[said('x'), call('{}')],
    ], 'calls'],
    ['without a reason', [start, grow(0, words('x'))], [said('x')], 'other'],
    ['with text at once', [start, begin(0, { type: 'text', text: 'x' }), stop(0)], [said('x')], 'other'],
    ['with an empty text', [start, begin(0, { type: 'text', text: '' }), stop(0), done('end_turn')], [], 'stop'],
    ['with input at once', [start, begin(0, use('a', { b: 1 })), stop(0)], [call('{"b":1}')], 'calls'],
    ['with input told twice', [start, begin(0, use('a', { b: 1 })), grow(0, json('{"b":2}')), stop(0)], [
      call('{"b":2}'),
    ], 'calls'],
    ['with a call without a name for it', [start, begin(0, use('')), stop(0), done('tool_use')], [
      call('{}', 'minted_0'),
    ], 'calls'],
    ['whose calls say that they end', [start, begin(0, use('a')), stop(0), done('end_turn')], [call('{}')], 'calls'],
    ['P3: with blocks side by side', [
      ...[start, begin(0, use('a')), begin(1, use('b')), grow(1, json('{"b":')), grow(0, json('{"a":1}'))],
      ...[grow(1, json('1}')), stop(1), stop(0), done('tool_use')],
    ], [call('{"a":1}'), call('{"b":1}', 'b')], 'calls'],
    ['P4: that starts a block twice', [start, begin(0, use('a')), begin(0, use('b')), stop(0), stop(0)], [
      ...[call('{}'), call('{}', 'b')],
    ], 'calls'],
    ['whose block changes', [start, grow(0, { type: 'thinking_delta', thinking: 't' }), grow(0, words('x'))], [
      ...[{ kind: 'reasoning', text: 't' }, said('x')],
    ], 'other'],
    ['P24: with a signature alone, in pieces', [
      ...[start, begin(0, { type: 'thinking', thinking: '', signature: '' })],
      ...[grow(0, { type: 'signature_delta', signature: 's' }), grow(0, { type: 'signature_delta', signature: 't' })],
      stop(0),
    ], [
      { kind: 'reasoning', text: '', sealed: { origin: 'here', form: 'signature', value: 'st' } },
    ], 'other'],
    ['with hidden thoughts', [start, begin(0, { type: 'redacted_thinking', data: 'd' }), stop(0)], [
      { kind: 'reasoning', text: '', sealed: { origin: 'here', form: 'redacted', value: 'd' } },
    ], 'other'],
    ['with a search', [
      ...[start, begin(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} })],
      ...[grow(0, json('{"query":"x"}')), stop(0), done('pause_turn')],
    ], [
      {
        ...{ kind: 'native', dialect: 'anthropic-messages', what: 'server_tool_use' },
        value: { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
      },
    ], 'paused'],
    ['with sources', [
      ...[start, grow(0, words('x'))],
      grow(0, { type: 'citations_delta', citation: { type: 'x', url: 'u', title: 't', cited_text: 'c' } }),
    ], [{ ...said('x'), citations: [{ url: 'u', title: 't', citedText: 'c' }] }], 'other'],
    ['P30: that refuses, and says why', [start, done('refusal', { stop_details: { explanation: 'no' } })], [
      { kind: 'refusal', text: 'no' },
    ], 'filtered'],
    ['of a later day', [start, { type: 'x' }, grow(0, { type: 'x' }), begin(1, { type: 'x', y: 1 }), stop(1)], [
      { kind: 'native', dialect: 'anthropic-messages', what: 'x', value: { type: 'x', y: 1 } },
    ], 'other'],
    ['that goes on after its end', [start, done('end_turn'), grow(0, words('x'))], [said('x')], 'stop'],
  ])('%s', (...row) => {
    const [, frames, parts, finish] = row
    const events = readAll(frames)
    lawful(events)
    expect(collectAnswer(events).choices).toEqual([{ parts, finish }] as unknown as Answer['choices'])
  })

  test('tells its usage as it grows', () => {
    const end = { ...done('end_turn'), usage: { output_tokens: 9 } }
    const usages = readAll([start, end]).filter(event => event.kind === 'usage')
    expect(usages.map(({ usage }) => usage)).toEqual([{ input: 5, output: 1 }, { input: 5, output: 9 }])
  })

  test('a tool that stands for the answer is the answer', () => {
    const source = () => sourceOf({ schemaTool: 'f' })
    const frames = [start, begin(0, use('a')), grow(0, json('{"b":')), grow(0, json('1}')), stop(0), done('tool_use')]
    const streamed = collectAnswer(readAll(frames, source()))
    expect(streamed.choices).toEqual([{ parts: [{ kind: 'text', text: '{"b":1}' }], finish: 'stop' }])
    const whole = codec.readWhole({ content: [use('a', { b: 1 })], stop_reason: 'tool_use' }, source())
    expect(whole.choices).toEqual(streamed.choices)
  })

  test('tools come back under their own names, and as what they are', () => {
    const source = () => sourceOf({ renamed: new Map([['f', 'a.b']]), wrapped: new Set(['f']) })
    const frames = [start, begin(0, use('a')), grow(0, json('{"input":"free ')), grow(0, json('text"}')), stop(0)]
    const part = { kind: 'call', id: 'a', name: 'a.b', arguments: 'free text', custom: true }
    expect(collectAnswer(readAll(frames, source())).choices[0]!.parts).toEqual([part as never])
    const whole = codec.readWhole({ content: [use('a', { input: 'free text' })] }, source())
    expect(whole.choices[0]!.parts).toEqual([part as never])
  })

  test('what makes no sense is refused', () => {
    expect(() => readAll([start, begin(0, { type: 'tool_use', id: 'a' })])).toThrow(Refusal)
    expect(() => readAll([start, grow(0, json('{}'))])).toThrow(Refusal)
    expect(() => codec.readWhole({ content: 5 }, sourceOf())).toThrow(Refusal)
    expect(() => codec.readWhole({ content: [{ type: 'tool_use' }] }, sourceOf())).toThrow(Refusal)
  })

  test('does not fill the memory', () => {
    const signature = { type: 'signature_delta', signature: 'x'.repeat(bounds.frameBytesMax) }
    expect(() => readAll([grow(0, signature), grow(0, signature)])).toThrow('too much')
  })

  test('is read, or refused, whatever it is', () => {
    const index = fc.constantFrom<unknown>(0, 1, 2, undefined, 'x')
    const type = fc.constantFrom(
      ...['text', 'thinking', 'tool_use', 'redacted_thinking', 'server_tool_use', 'text_delta', 'thinking_delta'],
      ...['signature_delta', 'input_json_delta', 'citations_delta', 'compaction_delta', 'compaction'],
    )
    const odd = fc.constantFrom<unknown>('', 'x', '{', '{}', null, 5)
    const value = fc.oneof(odd, fc.dictionary(fc.string(), fc.string()))
    const name = fc.constantFrom(
      ...['text', 'thinking', 'signature', 'data', 'name', 'id', 'input', 'partial_json', 'citation', 'content'],
    )
    const inner = fc.tuple(type, fc.dictionary(name, value)).map(([t, fields]) => ({ type: t, ...fields }))
    const frame = fc.record({
      type: fc.constantFrom(
        ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta'],
      ),
      ...{ index, content_block: inner, delta: fc.oneof(inner, fc.record({ stop_reason: value })) },
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

/** As `assembled`, where a model wrote whatever it liked as arguments. */
function assembledLoosely(sse: string): void {
  const frames = framesOf(sse).map(frame => {
    const { delta } = frame as { delta?: Json }
    return delta?.type === 'input_json_delta' ? { ...frame, delta: { ...delta, partial_json: ' ' } } : frame
  })
  const last = frames.map((frame, at) => (frame.type === 'content_block_stop' ? at : -1)).filter(at => at >= 0)
  const closed = frames.flatMap((frame, at) => {
    if (!last.includes(at)) return [frame]
    const delta = { type: 'input_json_delta', partial_json: '{}' }
    return [{ type: 'content_block_delta', index: frame.index, delta }, frame]
  })
  assembled(closed)
}

describe('a caller\'s stream', () => {
  test('P1: is legal for any lawful events', () => {
    fc.assert(fc.property(anyEvents(), events => assembledLoosely(writeAll(events))), { numRuns: 500 })
  })

  test('P3: says what the whole answer says, however its parts are mixed', () => {
    fc.assert(
      fc.property(anyEvents(1), events => {
        const answer = collectAnswer(events)
        const parts = answer.choices[0]?.parts ?? []
        fc.pre(parts.every(part => part.kind !== 'call' || part.custom === true || /^\s*\{/.test(part.arguments)))
        const whole = JSON.parse(codec.writeWhole(answer, askOf())) as Json
        const streamed = assembled(framesOf(writeAll(events)))
        expect(streamed.content).toEqual(whole.content)
        expect(streamed.stop_reason).toEqual(whole.stop_reason)
        expect(streamed.stop_sequence).toEqual(whole.stop_sequence)
      }),
      { numRuns: 500 },
    )
  })

  const open: AnswerEvent = { kind: 'open', index: 0, choice: 0, part: 'text' }
  const opened = (id: string, index: number): AnswerEvent => {
    return { kind: 'open', index, choice: 0, part: 'call', id, name: 'f' }
  }
  const delta = (index: number, text: string): AnswerEvent => ({ kind: 'delta', index, text })

  test('goes out as it comes, but for its end', () => {
    const writer = codec.openWriter(askOf())
    expect(framesOf(writer.write({ kind: 'start' })).map(({ type }) => type)).toEqual(['message_start'])
    expect(writer.write(open)).toBe('')
    expect(framesOf(writer.write(delta(0, 'x'))).length).toBe(2)
    expect(framesOf(writer.write(delta(0, 'y'))).length).toBe(1)
    expect(framesOf(writer.write({ kind: 'close', index: 0 })).length).toBe(1)
    expect(writer.write({ kind: 'finish', choice: 0, finish: 'length' })).toBe('')
    expect(writer.write({ kind: 'usage', usage: { input: 7, cacheRead: 3, output: 5 } })).toBe('')
    const [end, last] = framesOf(writer.end())
    expect(end).toMatchObject({
      delta: { stop_reason: 'max_tokens' },
      usage: { input_tokens: 7, cache_read_input_tokens: 3, cache_creation_input_tokens: 0, output_tokens: 5 },
    })
    expect(last).toEqual({ type: 'message_stop' })
    expect(writer.write(delta(0, 'z'))).toBe('')
  })

  test('an empty input is an object', () => {
    const frames = framesOf(writeAll([{ kind: 'start' }, opened('a', 0), { kind: 'close', index: 0 }]))
    expect(assembled(frames)).toMatchObject({ stop_reason: 'tool_use', content: [{ id: 'a', name: 'f', input: {} }] })
  })

  test('a call that nobody thought about holds the place of the thoughts that its caller expects', () => {
    const ask = () => ({ ...askOf(), json: { thinking: { type: 'enabled', budget_tokens: 2000 } } })
    const called = { kind: 'call', id: 'a', name: 'f', arguments: '{}' } as const
    const of = (...parts: AnswerPart[]): Answer => ({ choices: [{ parts, finish: 'calls' }] })
    const types = (answer: Answer) => {
      const whole = JSON.parse(codec.writeWhole(answer, ask())) as { content: Json[] }
      expect(assembled(framesOf(writeAll(eventsOf(answer), ask()))).content).toEqual(whole.content)
      return whole.content.map(({ type }) => type)
    }
    expect(types(of(called, { ...called, id: 'b' }))).toEqual(['redacted_thinking', 'tool_use', 'tool_use'])
    expect(types(of({ kind: 'text', text: 'x' }, called))).toEqual(['text', 'redacted_thinking', 'tool_use'])
    expect(types(of({ kind: 'reasoning', text: 'x' }, called))).toEqual(['thinking', 'tool_use'])
    expect(types(of({ kind: 'text', text: 'x' }))).toEqual(['text'])
  })

  test('nothing at all is a legal message', () => {
    expect(assembled(framesOf(writeAll([])))).toMatchObject({ content: [], stop_reason: 'end_turn' })
  })

  test('does not fill the memory', () => {
    const writer = codec.openWriter(askOf())
    for (const event of [opened('a', 0), opened('b', 1)]) writer.write(event)
    const much = delta(1, 'x'.repeat(bounds.keptAnswerBytesMax))
    expect(() => [writer.write(much), writer.write(much)]).toThrow('too much')
  })

  test('a hundred thousand pieces are written in time', () => {
    const writer = codec.openWriter(askOf())
    writer.write(open)
    const began = performance.now()
    for (let count = 0; count < 100_000; count++) writer.write(delta(0, 'x'))
    expect(performance.now() - began).toBeLessThan(1_500)
  })
})

test('what a caller gives back is what it was given, with its state', () => {
  fc.assert(
    fc.property(anyAnswer(1), answer => {
      const parts = answer.choices[0]!.parts
      const json = JSON.parse(codec.writeWhole(answer, askOf())) as Json
      const body = { model: 'a/b', max_tokens: 1, messages: [{ role: 'assistant', content: json.content }] }
      const asked = { path: '', query: () => null, header: () => undefined }
      const [turn] = readConversation(readCall(Buffer.from(JSON.stringify(body)), asked)).turns
      const states = (all: readonly Part[]) => all.flatMap(part => ('sealed' in part ? (part.sealed ?? []) : []))
      expect(states(turn?.parts ?? [])).toEqual(states(parts))
    }),
    { numRuns: 500 },
  )
})

test('all reasons to stop, both ways', () => {
  const finishes = ['stop', 'stop_sequence', 'length', 'context', 'filtered', 'paused'] as const
  for (const finish of finishes) {
    const answer: Answer = { choices: [{ parts: [{ kind: 'text', text: 'x' }], finish, stopSequence: 's' }] }
    const json = JSON.parse(codec.writeWhole(answer, askOf())) as Json
    expect(codec.readWhole(json, sourceOf()).choices[0]!.finish).toBe(finish)
    expect(json.stop_sequence).toBe(finish === 'stop_sequence' ? 's' : null)
  }
  const refused: Answer = { choices: [{ parts: [{ kind: 'refusal', text: 'no' }], finish: 'stop' }] }
  expect(JSON.parse(codec.writeWhole(refused, askOf()))).toMatchObject({ stop_reason: 'refusal' })
  const odd = codec.readWhole({ content: [], stop_reason: 'constructor' }, sourceOf())
  expect(odd.choices[0]!.finish).toBe('other')
})

test('what a message cannot hold is said to be lost', () => {
  const ask = askOf()
  const image = { kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } } as const
  const foreign = { kind: 'native', dialect: 'gemini', what: 'executable_code', value: {} } as const
  const cited = { kind: 'text', text: 'x', citations: [{ title: 'no address' }, { url: 'u' }] } as const
  const choice = { parts: [image, foreign, cited], finish: 'stop' } as const
  const answer: Answer = { choices: [choice, choice] }
  expect(JSON.parse(codec.writeWhole(answer, ask)).content).toMatchObject([{ type: 'text', citations: [{ url: 'u' }] }])
  const lost = ['answer.image', 'choices', 'citations', 'executable_code']
  expect([...ask.losses.codes].sort()).toEqual(lost)
  const streaming = askOf()
  writeAll(eventsOf(answer), streaming)
  expect([...streaming.losses.codes].sort()).toEqual(lost)
})
