import type { BodyPart } from '../../store/records/bodies-messages.ts'

// What a caller asked and was sent, held in memory until the call is settled: for calls with an idempotency key, and
// for keys whose owners have bodies kept. Ordinary calls have none.
const FIRST_BYTES = 16 * 1024

export class Recorder {
  /** Where bodies are kept. */
  readonly request: BodyPart | undefined
  readonly #bytesMax: number
  #room = Buffer.alloc(0)
  #length = 0
  /** More was sent than may be held. */
  overflowed = false
  contentType = ''

  constructor(request: BodyPart | undefined, bytesMax: number) {
    this.request = request
    this.#bytesMax = bytesMax
  }

  /** The answer so far, or its beginning. */
  get answer(): Buffer {
    return this.#room.subarray(0, this.#length)
  }

  /** What was to be sent before, and was not, counts for nothing. */
  begin(contentType: string): void {
    this.contentType = contentType
    this.#length = 0
    this.overflowed = false
  }

  /** Copies: pieces are views of larger buffers, which would all stay in memory. */
  take(bytes: Uint8Array): void {
    const fitting = Math.min(bytes.length, this.#bytesMax - this.#length)
    if (fitting < bytes.length) this.overflowed = true
    this.#grow(this.#length + fitting)
    this.#room.set(fitting === bytes.length ? bytes : bytes.subarray(0, fitting), this.#length)
    this.#length += fitting
  }

  #grow(length: number): void {
    if (length <= this.#room.length) return
    const room = Buffer.alloc(Math.min(this.#bytesMax, Math.max(length, 2 * this.#room.length, FIRST_BYTES)))
    room.set(this.answer)
    this.#room = room
  }
}
