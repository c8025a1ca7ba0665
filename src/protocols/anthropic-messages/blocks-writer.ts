// The blocks of a message for a caller, as both forms of an answer need them.
import type { Citation } from '../neutral/conversation.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { packSealed } from '../neutral/reasoning-state.ts'
import type { AnswerAsk } from '../protocol.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { packCallState, unsigned } from './foreign-state.ts'

/** Everything of a message but what the model says. */
export function messageHead({ requestId, model }: AnswerAsk): Json {
  return { id: `msg_${requestId.replace(/^req_/, '')}`, type: 'message', role: 'assistant', model }
}

/** What neither a whole message nor the head of a stream has anything to say of. */
export const messageTail: Json = { container: null, diagnostics: null }

export function stopDetails(stopReason: string): Json | null {
  return stopReason === 'refusal' ? { type: 'refusal', category: null, explanation: null } : null
}

/** State goes with its origin to a caller that gives it back to whichever upstream comes next. */
export const signatureOf = (sealed: Sealed | undefined): string =>
  sealed === undefined ? unsigned : packSealed(sealed)

export const hiddenThought = (sealed: Sealed): Json => ({ type: 'redacted_thinking', data: packSealed(sealed) })

export const callState = (sealed: Sealed, callId: string): Json => ({
  type: 'redacted_thinking',
  data: packCallState(sealed, callId),
})

/**
 * A caller that set a budget for thoughts expects some before every call, and so does its next upstream of this
 * dialect: where another gave none, this holds their place, and tells us that thinking cannot go on there.
 */
export function missingThought({ json }: AnswerAsk): Json | undefined {
  const isExpected = isObject(json.thinking) && json.thinking.type === 'enabled'
  return isExpected ? { type: 'redacted_thinking', data: unsigned } : undefined
}

export const toolUse = (id: string, name: string, input: Json): Json => ({
  type: 'tool_use',
  id,
  name,
  input,
  caller: { type: 'direct' },
})

/** Ids that this dialect takes when they come back. */
export const cleanId = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'

/** Only what was found on the web can be cited without the document at hand. Undefined for anything else. */
export function writeCitation({ url, title, citedText }: Citation): Json | undefined {
  if (url === undefined) return undefined
  return {
    type: 'web_search_result_location',
    url,
    title: title ?? null,
    encrypted_index: unsigned,
    cited_text: citedText ?? '',
  }
}
