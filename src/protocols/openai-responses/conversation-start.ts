// Identifies the conversation of a request, for affinity, and reads for how long its prompt should be cached.

import {
  asList,
  findFirstMessages,
  formatConversationStart,
  longerMs,
  readCacheOptionsMs,
  readMessageBreakpointsMs,
} from '../request/conversation-start.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

const systemRoles = ['system', 'developer']

export function readConversationStart(json: Json): string {
  const { conversation, input, instructions, prompt } = json
  const start = typeof input === 'string' ? { system: [], first: input } : findFirstMessages(input, systemRoles)
  return formatConversationStart({
    key: json.prompt_cache_key ?? (isObject(conversation) ? conversation.id : conversation),
    user: json.safety_identifier ?? json.user,
    tools: asList(json.tools),
    system: [instructions, isObject(prompt) ? prompt.id : undefined, start.system],
    first: start.first,
  })
}

export const readCacheMs = (json: Json): number | undefined =>
  longerMs(readCacheOptionsMs(json), readMessageBreakpointsMs(json.input))
