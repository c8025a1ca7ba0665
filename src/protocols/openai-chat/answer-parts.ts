// What writers of whole chat answers and of chat streams share: ids, finish reasons, media and stored reasoning state.

import { bounds } from '../../base/bounds.ts'
import type { Finish } from '../neutral/answer.ts'
import type { MediaPart, NativePart } from '../neutral/conversation.ts'
import { writtenReasons } from '../neutral/finish-reasons.ts'
import type { Losses } from '../neutral/losses.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import { fitsStorage, groupByCall } from '../neutral/stored-reasoning.ts'
import type { AnswerTarget } from '../protocol.ts'
import { writeCallSignature } from './reasoning-state.ts'

/** The gateway's id of an answer, in the form that chat clients expect. */
export const buildAnswerId = ({ requestId }: AnswerTarget): string => `chatcmpl-${requestId}`

/** Whether the request uses legacy `functions`, so that the answer must use `function_call`. */
export const isLegacy = ({ json }: AnswerTarget): boolean => Array.isArray(json.functions) && !Array.isArray(json.tools)

export type ChatFinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'

/** Clients know only five reasons. Whether there are calls decides between `stop` and `tool_calls`. */
export function chooseFinishReason(
  finish: Finish,
  has: { calls: boolean; refusal: boolean; legacy: boolean },
): ChatFinishReason {
  const reason = writtenReasons['openai-chat'][finish].reason as ChatFinishReason
  if (has.calls && (reason === 'stop' || reason === 'tool_calls')) return has.legacy ? 'function_call' : 'tool_calls'
  if (reason === 'tool_calls') return 'stop'
  // A refusal in the message is a complete answer.
  return has.refusal && reason === 'content_filter' ? 'stop' : reason
}

/** The signature of a call, in the field that Google's clients send back. */
export const writeCallState = (sealed: ReasoningState | undefined): object =>
  sealed?.form === 'thought' ? { extra_content: writeCallSignature(packReasoningState(sealed)) } : {}

const AUDIO_EXPIRES_S = 3_600

/** Returns the message fields for media. No fields, and a loss, if chat cannot carry the media. */
export function writeMedia(part: MediaPart | NativePart, target: AnswerTarget): Record<string, unknown> {
  const source = part.kind === 'native' ? undefined : part.source
  if (part.kind === 'image' && (source?.at === 'inline' || source?.at === 'url')) {
    const url = source.at === 'url' ? source.url : `data:${source.mime};base64,${source.base64}`
    return { images: [{ type: 'image_url', image_url: { url } }] }
  }
  if (part.kind === 'audio' && source?.at === 'inline') {
    const id = `audio_${target.requestId}`
    return { audio: { id, data: source.base64, transcript: '', expires_at: target.createdS + AUDIO_EXPIRES_S } }
  }
  target.losses.add(part.kind === 'native' ? part.what : part.kind)
  return {}
}

/** A tool call or thoughts of a choice, in the order of opening. */
export interface ChatStep {
  readonly callId?: string
  sealed?: ReasoningState | undefined
  /** The thoughts that belong to the state. Only their start, if they are too long to be stored. */
  text?: string
  /** Their length, if it is not that of `text`. */
  chars?: number
}

/** Stores the state of thoughts with the call after them, or else with the last call. */
export function storeReasoningState(steps: readonly ChatStep[], { keep, losses }: AnswerTarget): void {
  if (keep === undefined) return
  const withThoughts = steps.map(step => ({
    callId: step.callId,
    state: step.sealed && addThoughts(step.sealed, step, losses),
  }))
  for (const { callId, states } of groupByCall(withThoughts)) keep(callId, withinLimit(states, losses))
}

/** Adds the thoughts to their state. Most callers send neither back, and the provider wants both unchanged. */
export function addThoughts(
  sealed: ReasoningState,
  { text = '', chars = text.length }: Pick<ChatStep, 'text' | 'chars'>,
  losses: Losses,
): ReasoningState {
  if (text === '') return sealed
  return chars > bounds.reasoningStateBytesMax ? withoutThoughts(sealed, chars, losses) : { ...sealed, text }
}

/** Keeps the state alone. It can be used only if the caller sends the thoughts back. */
function withoutThoughts(sealed: ReasoningState, lostChars: number, losses: Losses): ReasoningState {
  losses.add('reasoning_state')
  return { ...sealed, lostChars }
}

/** Drops the thoughts if they are too long. */
function withinLimit(sealed: readonly ReasoningState[], losses: Losses): readonly ReasoningState[] {
  if (fitsStorage(sealed)) return sealed
  return sealed.map(({ text, ...stateOnly }) =>
    text === undefined ? stateOnly : withoutThoughts(stateOnly, text.length, losses),
  )
}
