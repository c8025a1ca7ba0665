// Builds the blocks of a message for a caller; both whole answers and streams use them.
import { addCitationLosses } from '../neutral/citation-losses.ts'
import type { Citation } from '../neutral/conversation.ts'
import type { Losses } from '../neutral/losses.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerTarget } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { packCallState, UNSIGNED_STATE } from './packed-state.ts'

/** The fields of a message before its content. */
export function buildMessageHead({ requestId, model }: AnswerTarget): Json {
  return { id: `msg_${requestId.replace(/^req_/, '')}`, type: 'message', role: 'assistant', model }
}

/** Required fields of a message that the gateway has no values for. */
export const messageTail: Json = { container: null, diagnostics: null }

export function buildStopDetails(stopReason: string): Json | null {
  return stopReason === 'refusal' ? { type: 'refusal', category: null, explanation: null } : null
}

/** Packs reasoning state with its origin, because the caller's next turn may go to another upstream. */
export const buildSignature = (sealed: ReasoningState | undefined): string =>
  sealed === undefined ? UNSIGNED_STATE : packReasoningState(sealed)

export const buildRedactedThinking = (sealed: ReasoningState): Json => ({
  type: 'redacted_thinking',
  data: packReasoningState(sealed),
})

export const buildCallState = (sealed: ReasoningState, callId: string): Json => ({
  type: 'redacted_thinking',
  data: packCallState(sealed, callId),
})

/**
 * A caller that set a thinking budget expects thinking before every tool call, and so does its next upstream of this
 * dialect. Where another provider sent none, this placeholder stands for it. In the next request the placeholder tells
 * the gateway that thinking cannot continue.
 */
export function buildMissingThinking({ json }: AnswerTarget): Json | undefined {
  const isExpected = isObject(json.thinking) && json.thinking.type === 'enabled'
  return isExpected ? { type: 'redacted_thinking', data: UNSIGNED_STATE } : undefined
}

export const buildToolUse = (id: string, name: string, input: Json): Json => ({
  type: 'tool_use',
  id,
  name,
  input,
  caller: { type: 'direct' },
})

/** Replaces characters in an id that this dialect would refuse when the id comes back. */
export const cleanId = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'

/**
 * Only web citations can be written, because all others need the cited document. Undefined for the others, which are
 * lost. A citation of this dialect belongs to a whole block and has no place in its text.
 */
export function writeCitation(citation: Citation, losses: Losses): Json | undefined {
  const { url, title, citedText } = citation
  if (url === undefined) {
    losses.add('citations')
    return undefined
  }
  addCitationLosses(citation, ['start', 'end'], losses)
  return {
    type: 'web_search_result_location',
    url,
    title: title ?? null,
    encrypted_index: UNSIGNED_STATE,
    cited_text: citedText ?? '',
  }
}
