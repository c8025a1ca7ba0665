// The neutral form of a request for embeddings: texts in, one vector per text out. Dialects for embeddings are
// translated through it, as dialects for conversations are translated through conversation.ts.

import { Refusal } from '../../base/errors.ts'
import type { Call } from './call.ts'
import type { Losses } from './losses.ts'

export interface VectorAsk {
  readonly inputs: readonly string[]
  readonly dimensions?: number
  /** The purpose of the vectors, as the dialect that has this field names it. */
  readonly taskType?: string
  /** Request fields that no other dialect can carry. Each one is a loss. */
  readonly unread: readonly string[]
}

export interface Vectors {
  readonly vectors: readonly (readonly number[])[]
  /** The tokens of all inputs, if they are known. */
  readonly tokens?: number
}

export interface VectorTarget {
  readonly model: string
  readonly losses: Losses
}

export interface VectorCodec {
  /** Throws a Refusal for inputs other than text, which cannot be translated. */
  readAsk(call: Call): VectorAsk
  writeAsk(request: VectorAsk, target: VectorTarget): string
  /** Throws a Refusal if the body has no vectors. */
  readVectors(body: Buffer): Vectors
  /** Writes the answer in the form that `call` asked for. */
  writeVectors(result: Vectors, call: Call): string
}

export const noVectors = (): Refusal => new Refusal('upstream_unusable', 'the answer has no vectors')

export function requireNumbers(value: unknown): readonly number[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every(Number.isFinite)) throw noVectors()
  return value as readonly number[]
}
