// Holds the request of a call and the answer that its caller gets until the call is settled. Only calls with an
// idempotency key, and calls of keys whose bodies are stored, have a recorder.

import type { BodyPart } from '../../store/records/bodies-messages.ts'

const FIRST_BYTES = 16 * 1024

export class BodyRecorder {
  /** Set where bodies are stored. */
  readonly request: BodyPart | undefined
  readonly #bytesMax: number
  #buffer = Buffer.alloc(0)
  #length = 0
  /** The answer is longer than the recorder may hold. */
  overflowed = false
  contentType = ''

  constructor(request: BodyPart | undefined, bytesMax: number) {
    this.request = request
    this.#bytesMax = bytesMax
  }

  /** The answer so far, or its beginning where it is too long. */
  get answer(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Begins the recording again; what was recorded before was never sent. */
  begin(contentType: string): void {
    this.contentType = contentType
    this.#length = 0
    this.overflowed = false
  }

  /** Copies the bytes, because a piece is a view of a larger buffer that would stay in memory. */
  take(bytes: Uint8Array): void {
    const taken = Math.min(bytes.length, this.#bytesMax - this.#length)
    if (taken < bytes.length) this.overflowed = true
    this.#grow(this.#length + taken)
    this.#buffer.set(taken === bytes.length ? bytes : bytes.subarray(0, taken), this.#length)
    this.#length += taken
  }

  #grow(length: number): void {
    if (length <= this.#buffer.length) return
    const buffer = Buffer.alloc(Math.min(this.#bytesMax, Math.max(length, 2 * this.#buffer.length, FIRST_BYTES)))
    buffer.set(this.answer)
    this.#buffer = buffer
  }
}
