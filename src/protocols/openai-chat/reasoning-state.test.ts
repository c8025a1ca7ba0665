// Tests that thoughts before tool calls return to their origin with text and state, for callers that send back the text,
// the state, both or neither.

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

const thinkingPart = (text: string, value: string): AnswerPart => ({
  kind: 'reasoning',
  text,
  sealed: { form: 'signature', value, origin: 'o' },
})
const call = (id: string): AnswerPart => ({ kind: 'call', id, name: 'f', arguments: '{}' })
const parts: readonly AnswerPart[] = [
  ...[
    thinkingPart('first\n\nwith a paragraph', 'S1'),
    thinkingPart('', 'S2'),
    { kind: 'text', text: 'Hello' } as const,
  ],
  ...[call('a'), thinkingPart('third', 'S3'), call('b')],
]

type Message = Record<string, unknown>
type StoredState = ReadonlyMap<string, readonly string[]>

/** The answer that the caller gets, and the stored state, packed as in the vault. */
function writeAnswer(
  answerParts: readonly AnswerPart[],
  codec: Codec,
  stream: boolean,
): { message: Message; stored: StoredState; losses: readonly string[] } {
  const answer: Answer = { choices: [{ parts: answerParts, finish: 'calls' }] }
  const stored = new Map<string, readonly string[]>()
  const target = askOf({ keep: (id, sealed) => void stored.set(id, sealed.map(packReasoningState)) })
  if (!stream) {
    const json = JSON.parse(codec.writeWholeAnswer(answer, target)) as { choices: { message: Message }[] }
    return { message: json.choices[0]!.message, stored, losses: target.losses.codes }
  }
  const writer = codec.openEventWriter(target)
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
  const { codes } = target.losses
  return { message: state === '' ? message : { ...message, encrypted_content: state }, stored, losses: codes }
}

type Codec = ReturnType<typeof buildCodec>

function readBack(message: Message, stored: StoredState, codec: Codec): readonly ConversationPart[] {
  const results = ['a', 'b'].map(id => ({ role: 'tool', tool_call_id: id, content: 'sunny' }))
  const json = { model: 'p/m', messages: [{ role: 'user', content: 'Hi' }, message, ...results] }
  const recall = (id: string): ReasoningState[] =>
    (stored.get(id) ?? []).flatMap(packed => unpackReasoningState(packed) ?? [])
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
    ['thoughts and state', []],
    ['the state only', ['reasoning_content']],
    ['the thoughts only', ['encrypted_content']],
    ['neither', ['reasoning_content', 'encrypted_content']],
  ])('thoughts are restored for a caller that sends back %s', (_name, omitted) => {
    const { message, stored } = writeAnswer(parts, codec, stream)
    const restored = readBack(without(message, ...omitted), stored, codec)
    expect<readonly unknown[]>(restored).toEqual(parts)
  })

  // Beyond the first limit a text is not even collected.
  test.each([bounds.reasoningStateBytesMax / 2 + 1, 3 * bounds.reasoningStateBytesMax])(
    'of thoughts that are too long (%p), a signature returns only with the same thoughts',
    length => {
      const long = 'x'.repeat(length)
      const pieces = [thinkingPart(long, 'S1'), call('a'), call('b')]
      const { message, stored, losses } = writeAnswer(pieces, codec, stream)
      expect(losses).toEqual(['reasoning_state'])
      const [state] = stored.get('a')!.map(unpackReasoningState)
      expect(state).toEqual({ form: 'signature', value: 'S1', origin: 'o', lostChars: length })
      const kept = without(message, 'encrypted_content')
      expect<readonly unknown[]>(readBack(kept, stored, codec)).toEqual(pieces)
      const others = [without(kept, 'reasoning_content'), { ...kept, reasoning_content: long.slice(1) }]
      for (const other of others) {
        expect(readBack(other, stored, codec).filter(part => 'sealed' in part)).toEqual([])
      }
    },
  )

  test('a signature of thoughts without text returns', () => {
    const omitted = [thinkingPart('', 'S1'), call('a'), call('b')]
    const { message, stored, losses } = writeAnswer(omitted, codec, stream)
    expect(losses).toEqual([])
    expect<readonly unknown[]>(readBack(message, stored, codec)).toEqual(omitted)
  })

  test('encrypted thoughts need no text', () => {
    const long = 'x'.repeat(bounds.reasoningStateBytesMax)
    const sealed = { form: 'encrypted', value: 'E1', origin: 'o' } as const
    const encrypted: AnswerPart = { kind: 'reasoning', text: long, sealed }
    const { message, stored } = writeAnswer([encrypted, call('a'), call('b')], codec, stream)
    const restored = readBack(without(message, 'reasoning_content', 'encrypted_content'), stored, codec)
    expect<unknown>(restored[0]).toEqual({ ...encrypted, text: '' })
  })
})
