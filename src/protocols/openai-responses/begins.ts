// Identifies the conversation of a request, for affinity, and reads for how long its prompt should be cached.

import {
  askedMs,
  beginningText,
  firstMessages,
  listOf,
  longer,
  markedMessagesMs,
} from '../request/conversation-start.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

const systemRoles = ['system', 'developer']

export function begins(json: Json): string {
  const { conversation, input, instructions, prompt } = json
  const start = typeof input === 'string' ? { system: [], first: input } : firstMessages(input, systemRoles)
  return beginningText({
    key: json.prompt_cache_key ?? (isObject(conversation) ? conversation.id : conversation),
    user: json.safety_identifier ?? json.user,
    tools: listOf(json.tools),
    system: [instructions, isObject(prompt) ? prompt.id : undefined, start.system],
    first: start.first,
  })
}

export const cacheMs = (json: Json): number | undefined => longer(askedMs(json), markedMessagesMs(json.input))
