// Tests answers for a caller of this dialect, whole and streamed: always valid, and all losses recorded.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyAnswer, anyEvents } from '../../../test/support/answers.ts'
import {
  askOf,
  assembled,
  assembledLoosely,
  framesOf,
  sourceOf,
  writeAll,
} from '../../../test/support/anthropic-answers.ts'
import { expectCheap } from '../../../test/support/cpu.ts'
import { bounds } from '../../base/bounds.ts'
import type { Answer, AnswerEvent, AnswerPart } from '../neutral/answer.ts'
import { collectAnswer, toEvents } from '../neutral/answer-collector.ts'
import type { ConversationPart } from '../neutral/conversation.ts'
import type { Json } from '../request/json-type.ts'
import { codec } from './codec.ts'
import { readConversation } from './read-conversation.ts'
import { readCall } from './request.ts'

describe("a caller's stream", () => {
  test('P1: is valid for any valid neutral events', () => {
    fc.assert(
      fc.property(anyEvents(), events => assembledLoosely(writeAll(events))),
      { numRuns: 500 },
    )
  })

  test('P3: has the content of the whole answer, in whatever order the parts arrive', () => {
    fc.assert(
      fc.property(anyEvents(1), events => {
        const answer = collectAnswer(events)
        const parts = answer.choices[0]?.parts ?? []
        fc.pre(parts.every(part => part.kind !== 'call' || part.custom === true || /^\s*\{/.test(part.arguments)))
        const whole = JSON.parse(codec.writeWholeAnswer(answer, askOf())) as Json
        const streamed = assembled(framesOf(writeAll(events)))
        expect(streamed.content).toEqual(whole.content)
        expect(streamed.stop_reason).toEqual(whole.stop_reason)
        expect(streamed.stop_sequence).toEqual(whole.stop_sequence)
      }),
      { numRuns: 500 },
    )
  })

  const open: AnswerEvent = { kind: 'open', index: 0, choice: 0, part: 'text' }
  const openCall = (id: string, index: number): AnswerEvent => {
    return { kind: 'open', index, choice: 0, part: 'call', id, name: 'f' }
  }
  const delta = (index: number, text: string): AnswerEvent => ({ kind: 'delta', index, text })

  test('is written as it arrives, except for its end', () => {
    const writer = codec.openEventWriter(askOf())
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

  test('has an object as the input of a tool call without arguments', () => {
    const finish: AnswerEvent = { kind: 'finish', choice: 0, finish: 'calls' }
    const frames = framesOf(writeAll([{ kind: 'start' }, openCall('a', 0), { kind: 'close', index: 0 }, finish]))
    expect(assembled(frames)).toMatchObject({ stop_reason: 'tool_use', content: [{ id: 'a', name: 'f', input: {} }] })
  })

  test('has a thinking placeholder before a tool call without thinking if the caller enabled thinking', () => {
    const targetWithThinking = () => ({ ...askOf(), json: { thinking: { type: 'enabled', budget_tokens: 2000 } } })
    const callPart = { kind: 'call', id: 'a', name: 'f', arguments: '{}' } as const
    const answerOf = (...parts: AnswerPart[]): Answer => ({ choices: [{ parts, finish: 'calls' }] })
    const types = (answer: Answer) => {
      const whole = JSON.parse(codec.writeWholeAnswer(answer, targetWithThinking())) as { content: Json[] }
      expect(assembled(framesOf(writeAll(toEvents(answer), targetWithThinking()))).content).toEqual(whole.content)
      return whole.content.map(({ type }) => type)
    }
    expect(types(answerOf(callPart, { ...callPart, id: 'b' }))).toEqual(['redacted_thinking', 'tool_use', 'tool_use'])
    expect(types(answerOf({ kind: 'text', text: 'x' }, callPart))).toEqual(['text', 'redacted_thinking', 'tool_use'])
    expect(types(answerOf({ kind: 'reasoning', text: 'x' }, callPart))).toEqual(['thinking', 'tool_use'])
    expect(types(answerOf({ kind: 'text', text: 'x' }))).toEqual(['text'])
  })

  test('of an empty answer is a valid message', () => {
    expect(assembled(framesOf(writeAll([])))).toMatchObject({ content: [], stop_reason: 'max_tokens' })
  })

  test('with too much buffered content is refused, so that it does not fill the memory', () => {
    const writer = codec.openEventWriter(askOf())
    for (const event of [openCall('a', 0), openCall('b', 1)]) writer.write(event)
    const longDelta = delta(1, 'x'.repeat(bounds.idempotentAnswerBytesMax))
    expect(() => [writer.write(longDelta), writer.write(longDelta)]).toThrow('answer_too_large')
  })

  test('of a hundred thousand pieces is written quickly', async () => {
    await expectCheap(1_500, () => {
      const writer = codec.openEventWriter(askOf())
      writer.write(open)
      for (let count = 0; count < 100_000; count++) writer.write(delta(0, 'x'))
    })
  })
})

test('a message that the caller sends back has the reasoning state of the answer', () => {
  fc.assert(
    fc.property(anyAnswer(1), answer => {
      const parts = answer.choices[0]!.parts
      const json = JSON.parse(codec.writeWholeAnswer(answer, askOf())) as Json
      const body = { model: 'a/b', max_tokens: 1, messages: [{ role: 'assistant', content: json.content }] }
      const head = { path: '', query: () => null, header: () => undefined }
      const [message] = readConversation(readCall(Buffer.from(JSON.stringify(body)), head)).messages
      const states = (all: readonly ConversationPart[]) =>
        all.flatMap(part => ('sealed' in part ? (part.sealed ?? []) : []))
      expect(states(message?.parts ?? [])).toEqual(states(parts))
    }),
    { numRuns: 500 },
  )
})

test('all stop reasons are read and written', () => {
  const finishes = ['stop', 'stop_sequence', 'length', 'context', 'filtered', 'paused'] as const
  for (const finish of finishes) {
    const answer: Answer = { choices: [{ parts: [{ kind: 'text', text: 'x' }], finish, stopSequence: 's' }] }
    const json = JSON.parse(codec.writeWholeAnswer(answer, askOf())) as Json
    expect(codec.readWholeAnswer(json, sourceOf()).choices[0]!.finish).toBe(finish)
    expect(json.stop_sequence).toBe(finish === 'stop_sequence' ? 's' : null)
  }
  const refused: Answer = { choices: [{ parts: [{ kind: 'refusal', text: 'no' }], finish: 'stop' }] }
  expect(JSON.parse(codec.writeWholeAnswer(refused, askOf()))).toMatchObject({ stop_reason: 'refusal' })
  const unknownReason = codec.readWholeAnswer({ content: [], stop_reason: 'constructor' }, sourceOf())
  expect(unknownReason.choices[0]!.finish).toBe('other')
})

test('parts that a message of this dialect cannot have are losses', () => {
  const target = askOf()
  const image = { kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } } as const
  const foreign = { kind: 'native', dialect: 'gemini', what: 'executable_code', value: {} } as const
  const cited = { kind: 'text', text: 'x', citations: [{ title: 'no address' }, { url: 'u' }] } as const
  const choice = { parts: [image, foreign, cited], finish: 'stop' } as const
  const answer: Answer = { choices: [choice, choice] }
  expect(JSON.parse(codec.writeWholeAnswer(answer, target)).content).toMatchObject([
    { type: 'text', citations: [{ url: 'u' }] },
  ])
  const lost = ['answer.image', 'choices', 'citations', 'executable_code']
  expect([...target.losses.codes].sort()).toEqual(lost)
  const streamTarget = askOf()
  writeAll(toEvents(answer), streamTarget)
  expect([...streamTarget.losses.codes].sort()).toEqual(lost)
})
