// What writers of whole chat answers and of chat streams share: ids, finish reasons, media and stored reasoning state.

import { bounds } from '../../base/bounds.ts'
import type { Finish } from '../neutral/answer.ts'
import type { MediaPart, NativePart } from '../neutral/conversation.ts'
import { writtenReasons } from '../neutral/finish-reasons.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { packSealed } from '../neutral/reasoning-state.ts'
import type { AnswerAsk } from '../protocol.ts'
import { thoughtField } from './reasoning-state.ts'

/** The gateway's id of an answer, in the form that chat clients expect. */
export const answerId = ({ requestId }: AnswerAsk): string => `chatcmpl-${requestId}`

/** Whether the request uses legacy `functions`, so that the answer must use `function_call`. */
export const isLegacy = ({ json }: AnswerAsk): boolean => Array.isArray(json.functions) && !Array.isArray(json.tools)

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'

/** Clients know only five reasons. Whether there are calls decides between `stop` and `tool_calls`. */
export function finishReason(finish: Finish, has: { calls: boolean; refusal: boolean; legacy: boolean }): FinishReason {
  const reason = writtenReasons['openai-chat'][finish].says as FinishReason
  if (has.calls && (reason === 'stop' || reason === 'tool_calls')) return has.legacy ? 'function_call' : 'tool_calls'
  if (reason === 'tool_calls') return 'stop'
  // A refusal in the message is a complete answer.
  return has.refusal && reason === 'content_filter' ? 'stop' : reason
}

/** The signature of a call, in the field that Google's clients send back. */
export const sealedCall = (sealed: Sealed | undefined): object =>
  sealed?.form === 'thought' ? { extra_content: thoughtField(packSealed(sealed)) } : {}

const AUDIO_EXPIRES_S = 3_600

/** Returns the message fields for media. No fields, and a loss, if chat cannot carry the media. */
export function writeMedia(part: MediaPart | NativePart, target: AnswerAsk): Record<string, unknown> {
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
export interface Step {
  readonly callId?: string
  sealed?: Sealed | undefined
  /** The thoughts that belong to the state. */
  text?: string
}

/** How much text fits into the stored state of one call, which is packed in base64. */
const STORED_TEXT_BYTES_MAX = Math.floor(bounds.keptReasoningBytesMax / 2)

/** Stores the state of thoughts with the call after them, or else with the last call. */
export function keepState(steps: readonly Step[], { keep }: AnswerAsk): void {
  if (keep === undefined) return
  const byCall: { readonly callId: string; readonly sealed: Sealed[] }[] = []
  let thoughts: Sealed[] = []
  for (const { callId, sealed, text = '' } of steps) {
    const own = sealed === undefined ? [] : [withText(sealed, text)]
    if (callId === undefined) thoughts.push(...own)
    else {
      byCall.push({ callId, sealed: [...thoughts, ...own] })
      thoughts = []
    }
  }
  byCall.at(-1)?.sealed.unshift(...thoughts)
  for (const { callId, sealed } of byCall) if (sealed.length > 0) keep(callId, withinLimit(sealed))
}

/** Adds the thoughts to their state. Most callers send neither back, and the provider wants both unchanged. */
export const withText = (sealed: Sealed, text: string): Sealed =>
  text === '' || text.length > bounds.keptReasoningBytesMax ? sealed : { ...sealed, text }

/** Drops the thoughts if they are too long, and keeps the state alone. */
function withinLimit(sealed: readonly Sealed[]): readonly Sealed[] {
  let bytes = 0
  for (const { text = '' } of sealed) bytes += Buffer.byteLength(text)
  return bytes <= STORED_TEXT_BYTES_MAX ? sealed : sealed.map(({ text: _text, ...stateOnly }) => stateOnly)
}
