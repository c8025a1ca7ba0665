// Tests that reasoning before a tool call comes back to its provider, also if the caller sends back only the call.

import { expect, test } from 'bun:test'
import { askOf } from '../../../test/support/translation.ts'
import { bounds } from '../../base/bounds.ts'
import type { Answer, AnswerEvent, AnswerPart } from '../neutral/answer.ts'
import { toEvents } from '../neutral/answer-collector.ts'
import type { ConversationPart } from '../neutral/conversation.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { packReasoningState, unpackReasoningState } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import { readConversation } from './read-conversation.ts'
import { readCall } from './request.ts'
import { openEventWriter, writeWholeAnswer } from './write-answer.ts'

const thought = (text: string, value: string): AnswerPart => ({
  kind: 'reasoning',
  text,
  sealed: { form: 'signature', value, origin: 'o' },
})
const call = (id: string): AnswerPart => ({ kind: 'call', id, name: 'f', arguments: '{}' })
const parts: readonly AnswerPart[] = [
  thought('first', 'S1'),
  thought('second', 'S2'),
  { kind: 'text', text: 'Hello' } as const,
  call('a'),
  thought('third', 'S3'),
  call('b'),
  call('c'),
]
const answer: Answer = { choices: [{ parts, finish: 'calls' }], usage: { input: 1, output: 1 } }

/** Packed and unpacked, as the vault stores them. */
function keeping(tell: (keep: (id: string, sealed: readonly ReasoningState[]) => void) => void): Map<string, string[]> {
  const kept = new Map<string, string[]>()
  tell((id, sealed) => void kept.set(id, sealed.map(packReasoningState)))
  return kept
}

const streamed = (events: readonly AnswerEvent[]): Map<string, string[]> =>
  keeping(keep => {
    const writer = openEventWriter(askOf({ keep }))
    for (const event of events) writer.write(event)
    writer.end()
  })

const asked: RequestHead = { path: '/v1beta/models/a/b:generateContent', query: () => null, header: () => undefined }

function readBack(
  contents: readonly object[],
  kept: ReadonlyMap<string, readonly string[]>,
): readonly ConversationPart[] {
  const heard = readCall(Buffer.from(JSON.stringify({ contents })), asked)
  const recall = (id: string): ReasoningState[] => (kept.get(id) ?? []).map(packed => unpackReasoningState(packed)!)
  return readConversation({ ...heard, recall }).messages[0]!.parts
}

const functionCall = (id: string): object => ({ functionCall: { id, name: 'f', args: {} } })
const forgetful = [{ role: 'model', parts: [{ text: 'Hello' }, ...['a', 'b', 'c'].map(functionCall)] }]

test('reasoning is restored at its position, whole or streamed', () => {
  for (const kept of [keeping(keep => writeWholeAnswer(answer, askOf({ keep }))), streamed(toEvents(answer))]) {
    expect([...kept.keys()]).toEqual(['a', 'b'])
    expect(readBack(forgetful, kept) as unknown).toEqual(parts)
  }
})

test('reasoning that the caller sends back is not added again', () => {
  const kept = streamed(toEvents(answer))
  const thoughtSignature = packReasoningState({ form: 'signature', value: 'S1', origin: 'o' })
  const carried = [{ role: 'model', parts: [{ text: 'first', thought: true, thoughtSignature }, functionCall('a')] }]
  expect(readBack(carried, kept).map(part => part.kind)).toEqual(['reasoning', 'call'])
  const unsealed = [{ role: 'model', parts: [{ text: 'first', thought: true }, functionCall('a')] }]
  const found = readBack(unsealed, kept)
  expect(found.map(part => (part.kind === 'reasoning' ? part.text : part.kind))).toEqual(['first', 'second', 'call'])
})

test('reasoning that is too long is not stored at all', () => {
  const long = thought('x'.repeat(bounds.reasoningStateBytesMax + 1), 'S')
  expect(streamed(toEvents({ choices: [{ parts: [long, call('a')], finish: 'calls' }] })).size).toBe(0)
})
