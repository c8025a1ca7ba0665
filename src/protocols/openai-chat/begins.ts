// Identifies the conversation of a chat request, for affinity, and reads for how long its prompt should be cached.

import {
  askedMs,
  beginningText,
  firstMessages,
  listOf,
  longer,
  markedMessagesMs,
  markedMs,
} from '../request/conversation-start.ts'
import type { Json } from '../request/json-type.ts'

const systemRoles = ['system', 'developer']

export function begins(json: Json): string {
  return beginningText({
    key: json.prompt_cache_key,
    user: json.safety_identifier ?? json.user,
    tools: listOf(json.tools) ?? listOf(json.functions),
    ...firstMessages(json.messages, systemRoles),
  })
}

export const cacheMs = (json: Json): number | undefined =>
  longer(longer(askedMs(json), markedMs(json.tools)), markedMessagesMs(json.messages))
