// The seam between the pipeline and a wire dialect: five functions. A dialect never sees another dialect.

import type { SpokenError } from '../base/errors.ts'
import type { AnswerReading, Call, CallTarget, FrameReading } from './call.ts'

export interface Protocol extends ErrorDialect {
  /** The last event of a stream, for an upstream that forgets it. */
  readonly lastEvent: string
  /** Checks the body as far as routing, limits and billing need it. Throws a Refusal. */
  readCall(body: Buffer): Call
  /** The request for an upstream of this same dialect. */
  writeCall(call: Call, target: CallTarget): Uint8Array
  /** Undefined for what is not an answer of this dialect at all. */
  readAnswer(body: Buffer): AnswerReading | undefined
  /** `data` is the text of one server-sent event. */
  readFrame(data: string | undefined): FrameReading
}

/** Every prefix answers errors in its dialect, also where calls in that dialect are not served. */
export interface ErrorDialect {
  readonly name: string
  writeError(error: SpokenError): WrittenError
}

export interface WrittenError {
  readonly status: number
  readonly body: string
  /** The same as the last events of a stream that had already begun. */
  readonly events: string
}
