// The worker thread that decompresses bodies which become large.

import { lowerPriority, usedCoreMs } from '../../base/threads/priority.ts'
import { serveThread } from '../../base/threads/serve-thread.ts'
import type { DecodeFailure, Encoding } from './encodings.ts'
import { decodeAtOnce } from './encodings.ts'

export interface DecodeMethods {
  decode(request: DecodeRequest): DecodedBody
}

/** The body, and how long a core was used for it. */
export interface DecodedBody {
  readonly decoded: Uint8Array | DecodeFailure
  readonly workMs: number
}

interface DecodeRequest {
  readonly encoding: Encoding
  readonly bytes: Uint8Array
  readonly decodedMax: number
}

lowerPriority()

serveThread<DecodeMethods>(
  () => ({
    decode({ encoding, bytes, decodedMax }) {
      const sinceMs = usedCoreMs()
      const decoded = decodeAtOnce(encoding, bytes, decodedMax)
      return { decoded, workMs: usedCoreMs() - sinceMs }
    },
  }),
  ({ decoded }) => (typeof decoded === 'string' ? [] : [decoded.buffer as ArrayBuffer]),
)
