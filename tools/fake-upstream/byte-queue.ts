// A queue of bytes that have arrived and are not read yet, for one reader and one writer.

export class ByteQueue {
  #pieces: Buffer[] = []
  #length = 0
  #ended = false
  #wake: (() => void) | undefined

  get length(): number {
    return this.#length
  }

  push(bytes: Buffer): void {
    this.#pieces.push(bytes)
    this.#length += bytes.length
    this.#wake?.()
  }

  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  /** Takes exactly this many bytes; undefined if the end comes first. */
  async take(count: number): Promise<Buffer | undefined> {
    while (this.#length < count) {
      if (this.#ended) return undefined
      await this.#more()
    }
    return this.#cut(count)
  }

  /** Takes everything up to and including the marker; undefined if the end comes first. */
  async takeThrough(marker: string, bytesMax: number): Promise<Buffer | 'too_long' | undefined> {
    for (;;) {
      const found = this.#joined().indexOf(marker, 0, 'latin1')
      if (found >= 0 && found + marker.length <= bytesMax) return this.#cut(found + marker.length)
      if (found >= 0 || this.#length > bytesMax) return 'too_long'
      if (this.#ended) return undefined
      await this.#more()
    }
  }

  #joined(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)]
    return this.#pieces[0]!
  }

  #cut(count: number): Buffer {
    const all = this.#joined()
    this.#pieces = [all.subarray(count)]
    this.#length -= count
    return all.subarray(0, count)
  }

  async #more(): Promise<void> {
    await new Promise<void>(resolve => (this.#wake = resolve))
    this.#wake = undefined
  }
}
