// Tests that thoughts before calls return to their origin with text and state, for callers that send back the text, the
// state, both or neither.

import { describe, expect, test } from 'bun:test'
import { askOf } from '../../../test/support/translation.ts'
import { bounds } from '../../base/bounds.ts'
import { arkChat } from '../ark/dialect.ts'
import type { Answer, AnswerPart } from '../neutral/answer.ts'
import { toEvents } from '../neutral/answer-collector.ts'
import type { Call } from '../neutral/call.ts'
import type { ConversationPart } from '../neutral/conversation.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { packReasoningState, unpackReasoningState } from '../neutral/reasoning-state.ts'
import { buildCodec } from './codec.ts'
import { openaiChatFlavour } from './flavour.ts'

const thought = (text: string, value: string): AnswerPart => ({
  kind: 'reasoning',
  text,
  sealed: { form: 'signature', value, origin: 'o' },
})
const call = (id: string): AnswerPart => ({ kind: 'call', id, name: 'f', arguments: '{}' })
const parts: readonly AnswerPart[] = [
  ...[thought('first\n\nwith a paragraph', 'S1'), thought('', 'S2'), { kind: 'text', text: 'Hello' } as const],
  ...[call('a'), thought('third', 'S3'), call('b')],
]

type Message = Record<string, unknown>
type Kept = ReadonlyMap<string, readonly string[]>

/** The answer that the caller gets, and the stored state, packed as in the vault. */
function told(said: readonly AnswerPart[], codec: Codec, stream: boolean): { message: Message; kept: Kept } {
  const answer: Answer = { choices: [{ parts: said, finish: 'calls' }] }
  const kept = new Map<string, readonly string[]>()
  const to = askOf({ keep: (id, sealed) => void kept.set(id, sealed.map(packReasoningState)) })
  if (!stream) {
    const json = JSON.parse(codec.writeWholeAnswer(answer, to)) as { choices: { message: Message }[] }
    return { message: json.choices[0]!.message, kept }
  }
  const writer = codec.openEventWriter(to)
  const text =
    toEvents(answer)
      .map(event => writer.write(event))
      .join('') + writer.end()
  const deltas = Array.from(text.matchAll(/^data: (\{.*)$/gm), ([, data]) => {
    const { choices } = JSON.parse(data!) as { choices: { delta: Message }[] }
    return choices[0]?.delta ?? {}
  })
  const joined = (field: string): string => deltas.map(delta => String(delta[field] ?? '')).join('')
  const calls = ['a', 'b'].map(id => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } }))
  const [thoughts, state] = [joined('reasoning_content'), joined('encrypted_content')]
  const message = { role: 'assistant', content: joined('content'), tool_calls: calls, reasoning_content: thoughts }
  return { message: state === '' ? message : { ...message, encrypted_content: state }, kept }
}

type Codec = ReturnType<typeof buildCodec>

function restored(message: Message, kept: Kept, codec: Codec): readonly ConversationPart[] {
  const results = ['a', 'b'].map(id => ({ role: 'tool', tool_call_id: id, content: 'sunny' }))
  const json = { model: 'p/m', messages: [{ role: 'user', content: 'Hi' }, message, ...results] }
  const recall = (id: string): ReasoningState[] =>
    (kept.get(id) ?? []).flatMap(packed => unpackReasoningState(packed) ?? [])
  const { messages } = codec.readConversation({ json, stream: false, choices: 1, recall } as unknown as Call)
  return messages[1]!.parts
}

const without = (message: Message, ...fields: readonly string[]): Message =>
  Object.fromEntries(Object.entries(message).filter(([name]) => !fields.includes(name)))

const rows = [openaiChatFlavour, arkChat].flatMap(flavour =>
  [false, true].map(stream => [flavour.dialect, stream] as const),
)

describe.each(rows)('%s, streamed: %p', (dialect, stream) => {
  const codec = buildCodec(dialect === 'ark' ? arkChat : openaiChatFlavour)

  test.each([
    ['all', []],
    ['no thoughts', ['reasoning_content']],
    ['no state', ['encrypted_content']],
    ['neither', ['reasoning_content', 'encrypted_content']],
  ])('a caller that brings back %s', (_name, forgotten) => {
    const { message, kept } = told(parts, codec, stream)
    const back = restored(without(message, ...forgotten), kept, codec)
    expect<readonly unknown[]>(back).toEqual(parts)
  })

  test('of thoughts that are too long to be stored, the state is stored alone', () => {
    const long = 'x'.repeat(bounds.reasoningStateBytesMax)
    const { kept } = told([thought(long, 'S1'), call('a')], codec, stream)
    expect(kept.get('a')!.map(unpackReasoningState)).toEqual([{ form: 'signature', value: 'S1', origin: 'o' }])
  })
})
