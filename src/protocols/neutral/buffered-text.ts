// Buffers a text that arrives in many small pieces. A short string takes many times the memory of its characters, so
// the pieces are joined now and then. Each character is copied at most twice.

/** So many pieces are joined at a time. */
const PIECES_MAX = 64

export class BufferedText {
  readonly #blocks: string[] = []
  #pieces: string[] = []
  #length = 0

  /** In UTF-16 code units. */
  get length(): number {
    return this.#length
  }

  add(text: string): void {
    this.#length += text.length
    this.#pieces.push(text)
    if (this.#pieces.length < PIECES_MAX) return
    this.#blocks.push(this.#pieces.join(''))
    this.#pieces = []
  }

  text(): string {
    return this.#blocks.join('') + this.#pieces.join('')
  }
}
