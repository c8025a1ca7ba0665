// Identifies the conversation of a chat request, for affinity, and reads for how long its prompt should be cached.

import {
  asList,
  findFirstMessages,
  formatConversationStart,
  longerMs,
  readBreakpointsMs,
  readCacheOptionsMs,
  readMessageBreakpointsMs,
} from '../request/conversation-start.ts'
import type { Json } from '../request/json-type.ts'

const systemRoles = ['system', 'developer']

export function readConversationStart(json: Json): string {
  return formatConversationStart({
    key: json.prompt_cache_key,
    user: json.safety_identifier ?? json.user,
    tools: asList(json.tools) ?? asList(json.functions),
    ...findFirstMessages(json.messages, systemRoles),
  })
}

export const readCacheMs = (json: Json): number | undefined =>
  longerMs(longerMs(readCacheOptionsMs(json), readBreakpointsMs(json.tools)), readMessageBreakpointsMs(json.messages))
