// The worker thread that decompresses bodies which become large. It runs only while the core is idle, so that other
// calls do not wait for it.

import { runOnlyWhenIdle } from '../../base/threads/priority.ts'
import { serveThread } from '../../base/threads/serve-thread.ts'
import type { DecodeFailure, Encoding } from './encodings.ts'
import { decodeAtOnce } from './encodings.ts'

export interface DecodeMethods {
  decode(request: DecodeRequest): Uint8Array | DecodeFailure
}

interface DecodeRequest {
  readonly encoding: Encoding
  readonly bytes: Uint8Array
  readonly decodedMax: number
}

runOnlyWhenIdle()

serveThread<DecodeMethods>(
  () => ({ decode: ({ encoding, bytes, decodedMax }) => decodeAtOnce(encoding, bytes, decodedMax) }),
  output => (typeof output === 'string' ? [] : [output.buffer as ArrayBuffer]),
)
