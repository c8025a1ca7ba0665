// Tells which conversation a call belongs to, for channel affinity, and for how long the caller wants its prompt cached.

import { formatConversationStart, parseTtlMs } from '../request/conversation-start.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { asList } from './input.ts'

/** The name of an explicitly created cache, which only the credential that created it can use. */
const cacheName = (json: Json): unknown => json.cachedContent ?? json.cached_content

export function readConversationStart(json: Json): string {
  const firstUserContent = asList(json.contents).find(
    content => isObject(content) && (content.role === undefined || content.role === 'user'),
  )
  return formatConversationStart({
    key: cacheName(json),
    tools: asList(json.tools).flatMap(listToolNames),
    system: json.systemInstruction ?? json.system_instruction,
    first: isObject(firstUserContent) ? firstUserContent.parts : undefined,
  })
}

/** Lists the declared functions of a tool, or the names of Google's own tools in it. */
function listToolNames(tool: unknown): readonly unknown[] {
  if (!isObject(tool)) return []
  const functions = tool.functionDeclarations ?? tool.function_declarations
  return functions === undefined ? Object.keys(tool).map(name => ({ name })) : asList(functions)
}

/** Google keeps an explicitly created cache for an hour by default. */
export const readCacheMs = (json: Json): number | undefined => (cacheName(json) ? parseTtlMs('1h') : undefined)
