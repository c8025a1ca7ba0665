// Counts the parts of an answer as its reader counts them, so that citations can name the part that they belong to.

import type { Json } from '../request/json-type.ts'

/** Where a text is written: in which part, and where it begins in that part, in bytes of UTF-8. */
export interface PartPlace {
  readonly partIndex: number
  readonly start: number
}

/** Whether two neighbouring parts are pieces of one thought. A part with a signature is complete. */
export const isSameThought = (last: Json | undefined, part: Json): boolean =>
  part.thought === true && isSameText(last, part)

/** Whether two neighbouring parts are texts of the same kind: words of the answer, or thoughts. */
const isSameText = (last: Json | undefined, part: Json): boolean =>
  typeof part.text === 'string' &&
  typeof last?.text === 'string' &&
  last.thought === part.thought &&
  last.thoughtSignature === undefined

/** The written parts of one choice. */
export class WrittenParts {
  readonly #isJoined: typeof isSameThought
  #last: Json | undefined
  #index = -1
  #bytes = 0

  /** The pieces of a text of a stream are parts, too, so that its reader takes neighbouring texts for one part. */
  constructor(isStream: boolean) {
    this.#isJoined = isStream ? isSameText : isSameThought
  }

  /** Counts a part that is written, and returns its place. */
  add(part: Json): PartPlace {
    if (!this.#isJoined(this.#last, part)) {
      this.#index++
      this.#bytes = 0
    }
    const place = { partIndex: this.#index, start: this.#bytes }
    if (typeof part.text === 'string') this.#bytes += Buffer.byteLength(part.text)
    this.#last = typeof part.text === 'string' ? part : undefined // an image is large, and is not needed any more
    return place
  }
}
