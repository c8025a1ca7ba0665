// The neutral form of a request for embeddings: texts in, one vector per text out. Dialects for embeddings are
// translated through it, as dialects for conversations are translated through conversation.ts.

import { Refusal } from '../../base/errors.ts'
import type { Call } from './call.ts'
import type { Losses } from './losses.ts'

export interface EmbeddingsRequest {
  readonly inputs: readonly string[]
  readonly dimensions?: number
  /** The purpose of the vectors, as the dialect that has this field names it. */
  readonly taskType?: string
  /** Request fields that no other dialect can carry. Each one is a loss. */
  readonly lostFields: readonly string[]
}

export interface EmbeddingsResult {
  readonly vectors: readonly (readonly number[])[]
  /** The tokens of all inputs, if they are known. */
  readonly tokens?: number
}

export interface EmbeddingsTarget {
  readonly model: string
  readonly losses: Losses
}

export interface EmbeddingsCodec {
  /** Throws a Refusal for inputs other than text, which cannot be translated. */
  readRequest(call: Call): EmbeddingsRequest
  writeRequest(request: EmbeddingsRequest, target: EmbeddingsTarget): string
  /** Throws a Refusal if the body has no vectors. */
  readResult(body: Buffer): EmbeddingsResult
  /** Writes the answer in the form that `call` asked for. */
  writeResult(result: EmbeddingsResult, call: Call): string
}

export const missingVectors = (): Refusal => new Refusal('upstream_unusable', 'the answer has no vectors')

export function requireVector(value: unknown): readonly number[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every(Number.isFinite)) throw missingVectors()
  return value as readonly number[]
}
