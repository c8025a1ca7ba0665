// Embeddings in no dialect: texts go in, and a vector for each comes out. Dialects of vectors meet here, as those of
// talk do in conversation.ts.

import { Refusal } from '../../base/errors.ts'
import type { Call } from './call.ts'
import type { Losses } from './losses.ts'

export interface VectorAsk {
  readonly inputs: readonly string[]
  readonly dimensions?: number
  /** What the vectors are for, in the words of the dialect that has them. */
  readonly taskType?: string
  /** Fields of the request that nobody else could be told of. Each is a loss. */
  readonly unread: readonly string[]
}

export interface Vectors {
  readonly vectors: readonly (readonly number[])[]
  /** Of all inputs, where it is known. */
  readonly tokens?: number
}

export interface VectorTarget {
  readonly model: string
  readonly losses: Losses
}

export interface VectorCodec {
  /** Throws a Refusal for what is no text, which only its own dialect knows to read. */
  readAsk(call: Call): VectorAsk
  writeAsk(ask: VectorAsk, target: VectorTarget): string
  /** Throws a Refusal for what is no answer. */
  readVectors(body: Buffer): Vectors
  /** For the call that asked. */
  writeVectors(found: Vectors, call: Call): string
}

export const noVectors = (): Refusal => new Refusal('upstream_unusable', 'no vectors')

export function requireNumbers(value: unknown): readonly number[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every(Number.isFinite)) throw noVectors()
  return value as readonly number[]
}
