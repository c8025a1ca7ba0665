// Checks a request against the version of this dialect that it names. The gateway refuses what that version refuses, so
// that a call which works through the gateway also works without it.

import { invalid } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** This version accepts everything that the later one accepts, and more. */
export const defaultVersion = '2023-06-01'
const LATER_VERSION = '2026-10-21'

const SAMPLING_FIELDS = ['temperature', 'top_p', 'top_k'] as const

/** Does not check unknown versions; the upstream does. */
export function checkVersion(json: Json, version: string | undefined): void {
  if (version !== LATER_VERSION) return
  const reason = `is not accepted since version ${LATER_VERSION}`
  for (const field of SAMPLING_FIELDS) if ((json[field] ?? undefined) !== undefined) throw invalid(field, reason)
  for (const [index, message] of (json.messages as readonly Json[]).entries()) {
    if (!Array.isArray(message.content)) continue
    for (const block of message.content as readonly unknown[]) {
      if (!isObject(block)) continue
      const path = `messages[${index}].content`
      if (message.role === 'assistant' && block.type === 'document') throw invalid(path, `${reason}: a document`)
      if (message.role === 'user' && isCited(block)) throw invalid(path, `${reason}: citations of a user's text`)
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
