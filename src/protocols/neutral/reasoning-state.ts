// Reasoning state: what a provider signs or encrypts and wants to see again, byte for byte, and nobody else can use.
// Carried through another dialect it becomes one text that names its origin, so that it comes back to the provider that
import { parseText } from '../request/json-object.ts'
// made it and is taken away before it could reach any other.

export interface Sealed {
  /** Who made it: one credential and model. Undefined for one that came without a name, in a dialect of its own. */
  readonly origin?: string
  /**
   * `signature` signs thoughts that are shown (Anthropic) · `redacted` are thoughts that are not shown (Anthropic)
   * `encrypted` is the content of a reasoning item (OpenAI, Ark) · `thought` signs a part (Gemini)
   * `shown` are thoughts that prove nothing, and have no value: it only says whose they are (chat)
   */
  readonly form: 'signature' | 'redacted' | 'encrypted' | 'thought' | 'shown'
  readonly value: string
  /** The item that it belonged to, where items have names. */
  readonly id?: string
  /** The thoughts that it is of, where it is kept for a caller that brings back neither. */
  readonly text?: string
}

/** How every packed state begins: base64 of `weir1{`. No provider's own state does. */
export const packedMark = 'd2VpcjF7'

/** In the alphabet of base64, because some SDKs decode the field that it travels in. */
export function packSealed({ origin, form, value, id, text }: Sealed): string {
  return Buffer.from(`weir1${JSON.stringify({ o: origin, f: form, v: value, i: id, t: text })}`).toString('base64')
}

const forms: readonly unknown[] = ['signature', 'redacted', 'encrypted', 'thought', 'shown']

/** Undefined for what is not ours, or is broken. */
export function unpackSealed(text: unknown): Sealed | undefined {
  if (typeof text !== 'string' || !text.startsWith(packedMark)) return undefined
  try {
    const packed = parseText(Buffer.from(text, 'base64').toString('utf8').slice('weir1'.length)) as Packed
    const { o: origin, f: form, v: value, i: id, t: said } = packed
    if (!forms.includes(form) || typeof value !== 'string') return undefined
    return {
      form: form as Sealed['form'],
      value,
      ...(typeof origin === 'string' && { origin }),
      ...(typeof id === 'string' && { id }),
      ...(typeof said === 'string' && { text: said }),
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
}
