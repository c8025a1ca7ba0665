// The types of a translation: both codecs of one attempt, and what converts the frames of its stream.

import type { ErrorCode } from '../../base/errors.ts'
import type { Usage } from '../../base/money/usage.ts'
import type { FrameReading } from '../../protocols/neutral/call.ts'
import type { Losses } from '../../protocols/neutral/losses.ts'
import type { AnswerSource, AnswerTarget, Codec } from '../../protocols/protocol.ts'

export interface Translation {
  /** The upstream's side. */
  readonly upstreamCodec: Codec
  readonly source: AnswerSource
  /** The caller's side. */
  readonly callerCodec: Codec
  readonly target: AnswerTarget
}

/** Converts each frame of the upstream into bytes for the caller. */
export interface FrameConverter {
  /** For a frame that is neither an error nor garbage. */
  convert(reading: FrameReading): Buffer
  /** The bytes that are held back until the call is settled. */
  end(): Buffer
}

/** Ends an answer that the gateway stops, as if it had reached its cap on output. */
export interface EarlyEnd {
  /** `usage` is our estimate; `code` is the error code that tells the caller why. */
  endEarly(usage: Usage, code: ErrorCode): Buffer
}

export interface EmbeddingsTranslation {
  readonly losses: Losses
  /** The answer in the caller's dialect. Throws where the upstream's body is not a valid answer. */
  writeAnswer(body: Buffer): Buffer
}
