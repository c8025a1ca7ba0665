// Tells which conversation a call belongs to, for channel affinity, and for how long the caller wants its prompt cached.

import {
  asList,
  findFirstMessages,
  formatConversationStart,
  longerMs,
  readBreakpointMs,
  readBreakpointsMs,
  readMessageBreakpointsMs,
} from '../request/conversation-start.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** Claude Code puts its session into the user id: `…_session_<uuid>`, or JSON with a `session_id`. */
const SESSION = /session_(?:id"\s*:\s*")?([0-9a-f-]{16,64})/
const USER_CHARS_MAX = 512

export function readConversationStart(json: Json): string {
  const { user_id: user } = isObject(json.metadata) ? json.metadata : {}
  const session = typeof user === 'string' ? SESSION.exec(user.slice(0, USER_CHARS_MAX))?.[1] : undefined
  const { system, first } = findFirstMessages(json.messages, ['system'])
  return formatConversationStart({
    key: session,
    user,
    tools: asList(json.tools),
    system: [json.system, system],
    first,
  })
}

export function readCacheMs(json: Json): number | undefined {
  const outsideMessages = longerMs(
    readBreakpointMs(json),
    longerMs(readBreakpointsMs(json.tools), readBreakpointsMs(json.system)),
  )
  return longerMs(outsideMessages, readMessageBreakpointsMs(json.messages))
}
