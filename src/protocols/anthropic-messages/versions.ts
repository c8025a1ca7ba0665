// The versions of this dialect. A caller is held to the one that it names: what its version refuses would work through
// us and fail without.
import { invalid } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

/** Takes all that the later one takes, and what that one refuses besides. */
export const defaultVersion = '2023-06-01'
const LATER_VERSION = '2026-10-21'

const SAMPLING = ['temperature', 'top_p', 'top_k'] as const

/** Versions that we do not know are the upstream's to judge. */
export function checkVersion(json: Json, version: string | undefined): void {
  if (version !== LATER_VERSION) return
  const says = `is not taken since version ${LATER_VERSION}`
  for (const field of SAMPLING) if ((json[field] ?? undefined) !== undefined) throw invalid(field, says)
  for (const [index, message] of (json.messages as readonly Json[]).entries()) {
    if (!Array.isArray(message.content)) continue
    for (const block of message.content as readonly unknown[]) {
      if (!isObject(block)) continue
      const path = `messages[${index}].content`
      if (message.role === 'assistant' && block.type === 'document') throw invalid(path, `${says}: a document`)
      if (message.role === 'user' && isCited(block)) throw invalid(path, `${says}: citations of a user's text`)
    }
  }
}

function isCited(block: Json): boolean {
  if (block.type === 'search_result') return Array.isArray(block.content) && block.content.some(hasCitations)
  return hasCitations(block)
}

function hasCitations(block: unknown): boolean {
  return isObject(block) && block.type === 'text' && Array.isArray(block.citations) && block.citations.length > 0
}
