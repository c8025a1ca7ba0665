// Reasoning state: data that a provider signs or encrypts and wants back unchanged, and that no other provider can use.
// In another dialect it travels as one packed text that names its origin. It is returned only to that origin, and is
// removed from requests to any other upstream.

import { parseNestedJson } from '../request/json-body.ts'

export interface ReasoningState {
  /** The credential and model that created the state. Undefined if the caller sent it in the provider's own form. */
  readonly origin?: string
  /**
   * - `signature`: signs visible thoughts (Anthropic)
   * - `redacted`: encrypted thoughts without a visible text (Anthropic)
   * - `encrypted`: the encrypted content of a reasoning item (OpenAI, Ark)
   * - `thought`: signs a part (Gemini)
   * - `shown`: visible thoughts without state; the value is empty and only the origin matters (chat)
   */
  readonly form: 'signature' | 'redacted' | 'encrypted' | 'thought' | 'shown'
  readonly value: string
  /** The id of the item that the state belongs to, in dialects where items have ids. */
  readonly id?: string
  /** The thoughts that belong to the state, if both are stored for a caller that sends neither back. */
  readonly text?: string
  /** The length of these thoughts, if they were too long to be stored. */
  readonly lostChars?: number
}

/** Each packed state starts with this: base64 of `weir1{`. No provider's own state does. */
export const PACKED_PREFIX = 'd2VpcjF7'

/** Returns base64, because some SDKs decode the field that carries the state. */
export function packReasoningState({ origin, form, value, id, text, lostChars }: ReasoningState): string {
  const packed = { o: origin, f: form, v: value, i: id, t: text, n: lostChars }
  return Buffer.from(`weir1${JSON.stringify(packed)}`).toString('base64')
}

const forms: readonly unknown[] = ['signature', 'redacted', 'encrypted', 'thought', 'shown']

/** Undefined if the text was not packed by the gateway, or is damaged. */
export function unpackReasoningState(text: unknown): ReasoningState | undefined {
  if (typeof text !== 'string' || !text.startsWith(PACKED_PREFIX)) return undefined
  try {
    const packed = parseNestedJson(Buffer.from(text, 'base64').toString('utf8').slice('weir1'.length)) as Packed
    const { o: origin, f: form, v: value, i: id, t: thoughts, n: lostChars } = packed
    if (!forms.includes(form) || typeof value !== 'string') return undefined
    return {
      form: form as ReasoningState['form'],
      value,
      ...(typeof origin === 'string' && { origin }),
      ...(typeof id === 'string' && { id }),
      ...(typeof thoughts === 'string' && { text: thoughts }),
      ...(typeof lostChars === 'number' && { lostChars }),
    }
  } catch {
    return undefined
  }
}

interface Packed {
  readonly o?: unknown
  readonly f?: unknown
  readonly v?: unknown
  readonly i?: unknown
  readonly t?: unknown
  readonly n?: unknown
}
