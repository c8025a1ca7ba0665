// What a model is told in words about a JSON answer, where no field of the request says it.

import type { Json } from '../request/json-type.ts'
import type { ConversationMessage } from './conversation.ts'
import { mayBeObject } from './root-object.ts'

/** Upstreams of OpenAI's dialects refuse the JSON mode without a schema unless a message contains the word JSON. */
export const mentionsJson = (messages: readonly ConversationMessage[]): boolean =>
  messages.some(({ parts }) => parts.some(part => part.kind === 'text' && /json/i.test(part.text)))

export const JSON_WORDS = 'Answer with a JSON object.'

export const schemaWords = (schema: Json): string =>
  `Answer with nothing but ${mayBeObject(schema) ? 'a JSON object' : 'JSON'} that matches this JSON schema:\n${JSON.stringify(schema)}`
