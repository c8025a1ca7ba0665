// Conversations as they are meant, and the requests that Anthropic's dialect makes of them, for its tests.

import type { Traits } from '../../src/base/money/model-traits.ts'
import { writeConversation } from '../../src/protocols/anthropic-messages/conversation-writer.ts'
import type { CallPart, Conversation, Part, ResultPart, Turn } from '../../src/protocols/neutral/conversation.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import type { TranslationNotes } from '../../src/protocols/neutral/translation-notes.ts'
import type { ConversationTarget } from '../../src/protocols/protocol.ts'
import type { Json } from '../../src/protocols/request/json-type.ts'

export const text = (words: string) => ({ kind: 'text', text: words }) as const
export const user = (...parts: Part[]): Turn => ({ role: 'user', parts })
export const model = (...parts: Part[]): Turn => ({ role: 'assistant', parts })
export const tool = (...parts: Part[]): Turn => ({ role: 'tool', parts })
export const call = (id: string, name = 'f', args = '{}'): CallPart => ({ kind: 'call', id, name, arguments: args })
export const result = (callId: string, words = 'done'): ResultPart => ({ kind: 'result', callId, parts: [text(words)] })
export const hi = user(text('hi'))

export interface Over {
  readonly traits?: Traits
  readonly target?: Partial<ConversationTarget>
}

export interface Written {
  readonly body: Json & { readonly messages: readonly Json[] }
  readonly losses: readonly string[]
  readonly notes: TranslationNotes
}

export const targetOf = ({ traits = {}, target = {} }: Over = {}): ConversationTarget => ({
  ...{ model: 'claude', traits, outputTokensMax: 8000, cap: undefined, capField: 'max_tokens', askUsage: true },
  ...{ origin: 'here', media: new Map(), notes: { losses: new Losses(), renamed: new Map() } },
  ...target,
})

export function write(said: Partial<Conversation>, over: Over = {}): Written {
  const target = targetOf(over)
  const { notes } = target
  const conversation = { turns: [hi], tools: [], settings: { stream: false }, unread: [], ...said }
  const body = writeConversation(conversation, target)
  return { body: JSON.parse(body) as Written['body'], losses: notes.losses.codes, notes }
}
