// One attempt whose upstream speaks another dialect than the caller: both codecs, and how frames are turned.

import type { FrameReading } from '../../protocols/neutral/call.ts'
import type { Losses } from '../../protocols/neutral/losses.ts'
import type { AnswerAsk, AnswerSource, Codec } from '../../protocols/protocol.ts'

export interface Translation {
  /** The upstream's side. */
  readonly from: Codec
  readonly source: AnswerSource
  /** The caller's side. */
  readonly to: Codec
  readonly ask: AnswerAsk
}

/** Makes of each frame of the upstream's what goes to the caller. */
export interface FrameTurner {
  /** For a frame that is neither an error nor garbage. */
  take(reading: FrameReading): Buffer
  /** What waits until the call is settled. */
  end(): Buffer
}

export interface VectorTranslation {
  readonly losses: Losses
  /** The upstream's answer as its caller is to get it. Throws for what is none. */
  writeAnswer(body: Buffer): Buffer
}
