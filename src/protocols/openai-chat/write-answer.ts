// What a whole chat answer and its stream have in common: names, the reason for stopping, media, state that is kept.

import { bounds } from '../../base/bounds.ts'
import type { Finish } from '../neutral/answer.ts'
import type { MediaPart, NativePart } from '../neutral/conversation.ts'
import { writtenReasons } from '../neutral/finish-reasons.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { packSealed } from '../neutral/reasoning-state.ts'
import type { AnswerAsk } from '../protocol.ts'
import { thoughtField } from './reasoning-state.ts'

/** Ours, in the form that chat clients know. */
export const answerId = ({ requestId }: AnswerAsk): string => `chatcmpl-${requestId}`

/** Asked by a client from before tools, which looks for its answer elsewhere. */
export const isLegacy = ({ json }: AnswerAsk): boolean => Array.isArray(json.functions) && !Array.isArray(json.tools)

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'

/** Clients know these five and no other. Calls are there or not, whatever was said of them. */
export function finishReason(finish: Finish, has: { calls: boolean; refusal: boolean; legacy: boolean }): FinishReason {
  const reason = writtenReasons['openai-chat'][finish].says as FinishReason
  if (has.calls && (reason === 'stop' || reason === 'tool_calls')) return has.legacy ? 'function_call' : 'tool_calls'
  if (reason === 'tool_calls') return 'stop'
  // A refusal that is said in words is an answer like any other.
  return has.refusal && reason === 'content_filter' ? 'stop' : reason
}

/** A signature that Google's clients bring back with the call. */
export const sealedCall = (sealed: Sealed | undefined): object =>
  sealed?.form === 'thought' ? { extra_content: thoughtField(packSealed(sealed)) } : {}

const SOUND_KEPT_S = 3_600

/** The fields of a message that hold it; none where chat has no place for it. */
export function writeMedia(part: MediaPart | NativePart, to: AnswerAsk): Record<string, unknown> {
  const source = part.kind === 'native' ? undefined : part.source
  if (part.kind === 'image' && (source?.at === 'inline' || source?.at === 'url')) {
    const url = source.at === 'url' ? source.url : `data:${source.mime};base64,${source.base64}`
    return { images: [{ type: 'image_url', image_url: { url } }] }
  }
  if (part.kind === 'audio' && source?.at === 'inline') {
    const id = `audio_${to.requestId}`
    return { audio: { id, data: source.base64, transcript: '', expires_at: to.createdS + SOUND_KEPT_S } }
  }
  to.losses.add(part.kind === 'native' ? part.what : part.kind)
  return {}
}

/** One part of a choice, in the order of opening: a call, or thoughts. */
export interface Step {
  readonly callId?: string
  sealed?: Sealed | undefined
  /** The thoughts that are sealed. */
  text?: string
}

/** As much text as fits what is kept of one call, in the base64 that it is packed in. */
const KEPT_TEXT_BYTES_MAX = Math.floor(bounds.keptReasoningBytesMax / 2)

/** The state of thoughts is kept with the call that follows them, or else with the last one. */
export function keepState(steps: readonly Step[], { keep }: AnswerAsk): void {
  if (keep === undefined) return
  const kept: { readonly callId: string; readonly sealed: Sealed[] }[] = []
  let thoughts: Sealed[] = []
  for (const { callId, sealed, text = '' } of steps) {
    const own = sealed === undefined ? [] : [withText(sealed, text)]
    if (callId === undefined) thoughts.push(...own)
    else {
      kept.push({ callId, sealed: [...thoughts, ...own] })
      thoughts = []
    }
  }
  kept.at(-1)?.sealed.unshift(...thoughts)
  for (const { callId, sealed } of kept) if (sealed.length > 0) keep(callId, fitting(sealed))
}

/** The thoughts go with their seal: most callers bring back neither, and their maker wants both as they were. */
export const withText = (sealed: Sealed, text: string): Sealed =>
  text === '' || text.length > bounds.keptReasoningBytesMax ? sealed : { ...sealed, text }

/** Seals without their thoughts are better than nothing. */
function fitting(sealed: readonly Sealed[]): readonly Sealed[] {
  let bytes = 0
  for (const { text = '' } of sealed) bytes += Buffer.byteLength(text)
  return bytes <= KEPT_TEXT_BYTES_MAX ? sealed : sealed.map(({ text: _text, ...seal }) => seal)
}
