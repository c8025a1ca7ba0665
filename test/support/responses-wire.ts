// Shared by the tests of the Responses dialect: its stream as events, and both sides of a translation.

import { Refusal } from '../../src/base/errors.ts'
import type { Conversation } from '../../src/protocols/neutral/conversation.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import type { TranslationNotes } from '../../src/protocols/neutral/translation-notes.ts'
import type { AnswerSource, AnswerTarget, ConversationTarget } from '../../src/protocols/protocol.ts'
import { protocols } from '../../src/protocols/protocols.ts'

export type Wire = Readonly<Record<string, unknown>>

export function eventsOfSse(sse: string): readonly Wire[] {
  return sse
    .split('\n\n')
    .filter(block => block.trim() !== '' && block !== 'data: [DONE]')
    .map(block => {
      const [event, data] = block.split('\n')
      const json = JSON.parse(data!.slice('data: '.length)) as Wire
      if (event !== `event: ${String(json.type)}`) throw new Error(`${event} is not ${String(json.type)}`)
      return json
    })
}

export const notes = (): TranslationNotes => ({ losses: new Losses(), renamed: new Map() })

export function source(fields: Partial<AnswerSource> = {}): AnswerSource {
  let calls = 0
  return { origin: 'here', notes: notes(), mintCallId: () => `call_minted${calls++}`, ...fields }
}

export const answerTargetOf = (fields: Partial<AnswerTarget> = {}): AnswerTarget => ({
  requestId: 'req_0123456789a',
  model: 'p/m',
  createdS: 1_763_000_000,
  wantsUsage: true,
  choices: 1,
  json: { model: 'p/m', input: 'hi' },
  losses: new Losses(),
  ...fields,
})

export const target = (fields: Partial<ConversationTarget> = {}): ConversationTarget => ({
  model: 'm',
  traits: {},
  outputTokensMax: undefined,
  cap: undefined,
  capField: 'max_tokens',
  askUsage: true,
  origin: 'here',
  media: new Map(),
  notes: notes(),
  ...fields,
})

export type Name = 'openai-responses' | 'ark-responses'
const requestInfo = { path: '/v1/responses', query: () => null, header: () => undefined }

export function read(fields: Wire, name: Name = 'openai-responses'): Conversation {
  const protocol = protocols[name]
  const body = Buffer.from(JSON.stringify({ model: 'p/m', input: 'hi', ...fields }))
  return protocol.codec.readConversation(protocol.readCall(body, requestInfo))
}

export const readItems = (...input: readonly unknown[]): Conversation['messages'] => read({ input }).messages
export const readPart = (part: unknown): Conversation['messages'][number]['parts'][number] =>
  readItems({ role: 'user', content: [part] })[0]!.parts[0]!

type To = Partial<ConversationTarget>

export function write(conversation: Conversation, to: To = {}, name: Name = 'openai-responses') {
  const at = target(to)
  const json = JSON.parse(protocols[name].codec.writeConversation(conversation, at)) as Wire
  return { json, losses: at.notes.losses.codes, notes: at.notes }
}

export const readAndWrite = (fields: Wire, to: Partial<ConversationTarget> = {}) => write(read(fields), to)
export const conversationOf = (fields: Partial<Conversation>): Conversation => ({
  messages: [{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }],
  tools: [],
  settings: { stream: false },
  lostFields: [],
  ...fields,
})

export function refusedParam(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    if (error instanceof Refusal) return error.extras.param
    throw error
  }
  throw new Error('nothing was refused')
}
