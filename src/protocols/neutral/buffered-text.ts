// A text that comes in many small pieces and is held to its end. Each piece alone would take many times the room of its
// letters, so that they are put together again and again, every letter twice at most.

/** What is put together at a time: a few, so that the pieces themselves never take much room. */
const PIECES_MAX = 64

export class HeldText {
  readonly #joined: string[] = []
  #pieces: string[] = []
  #length = 0

  /** In UTF-16 units. */
  get length(): number {
    return this.#length
  }

  add(text: string): void {
    this.#length += text.length
    this.#pieces.push(text)
    if (this.#pieces.length < PIECES_MAX) return
    this.#joined.push(this.#pieces.join(''))
    this.#pieces = []
  }

  whole(): string {
    return this.#joined.join('') + this.#pieces.join('')
  }
}
