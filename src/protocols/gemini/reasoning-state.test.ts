// Tests that reasoning before a tool call comes back to its provider, also if the caller sends back only the call.

import { expect, test } from 'bun:test'
import { askOf } from '../../../test/support/translation.ts'
import { bounds } from '../../base/bounds.ts'
import type { Answer, AnswerEvent, AnswerPart } from '../neutral/answer.ts'
import { toEvents } from '../neutral/answer-collector.ts'
import type { ConversationPart } from '../neutral/conversation.ts'
import { Losses } from '../neutral/losses.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { packReasoningState, unpackReasoningState } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import { readConversation } from './read-conversation.ts'
import { readCall } from './request.ts'
import { openEventWriter, writeWholeAnswer } from './write-answer.ts'

const thinkingPart = (text: string, value: string): AnswerPart => ({
  kind: 'reasoning',
  text,
  sealed: { form: 'signature', value, origin: 'o' },
})
const call = (id: string): AnswerPart => ({ kind: 'call', id, name: 'f', arguments: '{}' })
const parts: readonly AnswerPart[] = [
  thinkingPart('first', 'S1'),
  thinkingPart('second', 'S2'),
  { kind: 'text', text: 'Hello' } as const,
  call('a'),
  thinkingPart('third', 'S3'),
  call('b'),
  call('c'),
]
const answer: Answer = { choices: [{ parts, finish: 'calls' }], usage: { input: 1, output: 1 } }

/** Collects the reasoning state that a writer stores for each call id, packed as in the vault. */
function collectState(
  write: (keep: (id: string, sealed: readonly ReasoningState[]) => void) => void,
): Map<string, string[]> {
  const stored = new Map<string, string[]>()
  write((id, sealed) => void stored.set(id, sealed.map(packReasoningState)))
  return stored
}

const streamed = (events: readonly AnswerEvent[], losses = new Losses()): Map<string, string[]> =>
  collectState(keep => {
    const writer = openEventWriter(askOf({ keep, losses }))
    for (const event of events) writer.write(event)
    writer.end()
  })

const requestHead: RequestHead = {
  path: '/v1beta/models/a/b:generateContent',
  query: () => null,
  header: () => undefined,
}

function readBack(
  contents: readonly object[],
  stored: ReadonlyMap<string, readonly string[]>,
): readonly ConversationPart[] {
  const call = readCall(Buffer.from(JSON.stringify({ contents })), requestHead)
  const recall = (id: string): ReasoningState[] => (stored.get(id) ?? []).map(packed => unpackReasoningState(packed)!)
  return readConversation({ ...call, recall }).messages[0]!.parts
}

const functionCall = (id: string): object => ({ functionCall: { id, name: 'f', args: {} } })
const withoutThinking = [{ role: 'model', parts: [{ text: 'Hello' }, ...['a', 'b', 'c'].map(functionCall)] }]

test('reasoning is restored at its position, whole or streamed', () => {
  for (const stored of [collectState(keep => writeWholeAnswer(answer, askOf({ keep }))), streamed(toEvents(answer))]) {
    expect([...stored.keys()]).toEqual(['a', 'b'])
    expect(readBack(withoutThinking, stored) as unknown).toEqual(parts)
  }
})

test('reasoning that the caller sends back is not added again', () => {
  const stored = streamed(toEvents(answer))
  const thoughtSignature = packReasoningState({ form: 'signature', value: 'S1', origin: 'o' })
  const withState = [{ role: 'model', parts: [{ text: 'first', thought: true, thoughtSignature }, functionCall('a')] }]
  expect(readBack(withState, stored).map(part => part.kind)).toEqual(['reasoning', 'call'])
  const withoutState = [{ role: 'model', parts: [{ text: 'first', thought: true }, functionCall('a')] }]
  const found = readBack(withoutState, stored)
  expect(found.map(part => (part.kind === 'reasoning' ? part.text : part.kind))).toEqual(['first', 'second', 'call'])
})

test('reasoning that is too long is not stored at all, and is reported as lost', () => {
  const long = thinkingPart('x'.repeat(bounds.reasoningStateBytesMax + 1), 'S')
  const losses = new Losses()
  expect(streamed(toEvents({ choices: [{ parts: [long, call('a')], finish: 'calls' }] }), losses).size).toBe(0)
  expect(losses.codes).toEqual(['reasoning_state'])
})
