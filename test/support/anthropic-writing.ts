// Builds neutral conversations and writes them as requests of Anthropic's dialect, for its tests.

import type { ModelTraits } from '../../src/base/money/model-traits.ts'
import { writeConversation } from '../../src/protocols/anthropic-messages/write-conversation.ts'
import type {
  CallPart,
  Conversation,
  ConversationMessage,
  ConversationPart,
  ResultPart,
} from '../../src/protocols/neutral/conversation.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import type { TranslationNotes } from '../../src/protocols/neutral/translation-notes.ts'
import type { ConversationTarget } from '../../src/protocols/protocol.ts'
import type { Json } from '../../src/protocols/request/json-type.ts'

export const text = (words: string) => ({ kind: 'text', text: words }) as const
export const user = (...parts: ConversationPart[]): ConversationMessage => ({ role: 'user', parts })
export const model = (...parts: ConversationPart[]): ConversationMessage => ({ role: 'assistant', parts })
export const tool = (...parts: ConversationPart[]): ConversationMessage => ({ role: 'tool', parts })
export const call = (id: string, name = 'f', args = '{}'): CallPart => ({ kind: 'call', id, name, arguments: args })
export const result = (callId: string, words = 'done'): ResultPart => ({ kind: 'result', callId, parts: [text(words)] })
export const hi = user(text('hi'))

export interface Over {
  readonly traits?: ModelTraits
  readonly target?: Partial<ConversationTarget>
}

export interface Written {
  readonly body: Json & { readonly messages: readonly Json[] }
  readonly losses: readonly string[]
  readonly notes: TranslationNotes
}

export const targetOf = ({ traits = {}, target = {} }: Over = {}): ConversationTarget => ({
  model: 'claude',
  traits,
  outputTokensMax: 8000,
  cap: undefined,
  capField: 'max_tokens',
  askUsage: true,
  origin: 'here',
  media: new Map(),
  notes: { losses: new Losses(), renamed: new Map() },
  ...target,
})

export function write(fields: Partial<Conversation>, over: Over = {}): Written {
  const target = targetOf(over)
  const { notes } = target
  const conversation = { messages: [hi], tools: [], settings: { stream: false }, lostFields: [], ...fields }
  const body = writeConversation(conversation, target)
  return { body: JSON.parse(body) as Written['body'], losses: notes.losses.codes, notes }
}
