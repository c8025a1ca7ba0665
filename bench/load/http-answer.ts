// Reads an HTTP/1.1 answer as it arrives on a socket, detects its end and returns its body.

const HEAD_END = Buffer.from('\r\n\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')
const BYTES_AT_FIRST = 4_096

export class HttpAnswer {
  #bytes = Buffer.allocUnsafe(BYTES_AT_FIRST)
  #length = 0
  #bodyAt = 0
  /** Undefined for a chunked body. */
  #bodyLength: number | undefined
  status = 0

  reset(): void {
    this.#length = 0
    this.#bodyAt = 0
    this.#bodyLength = undefined
    this.status = 0
  }

  /** Whether a part of the body has arrived. */
  get hasBody(): boolean {
    return this.#bodyAt > 0 && this.#length > this.#bodyAt
  }

  /** Adds bytes that have arrived. Returns whether the answer is complete. */
  add(bytes: Buffer): boolean {
    this.#keep(bytes)
    if (this.#bodyAt === 0 && !this.#readHead()) return false
    if (this.#bodyLength !== undefined) return this.#length - this.#bodyAt >= this.#bodyLength
    const lastAt = this.#length - LAST_CHUNK.length
    if (lastAt < this.#bodyAt || this.#bytes.compare(LAST_CHUNK, 0, LAST_CHUNK.length, lastAt, this.#length) !== 0) {
      return false
    }
    return lastAt === this.#bodyAt || this.#bytes[lastAt - 1] === 0x0a
  }

  body(): Buffer {
    const raw = this.#bytes.subarray(this.#bodyAt, this.#length)
    return this.#bodyLength === undefined ? unchunk(raw) : raw
  }

  #keep(bytes: Buffer): void {
    const length = this.#length + bytes.length
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, this.#bytes.length * 2))
      this.#bytes.copy(larger, 0, 0, this.#length)
      this.#bytes = larger
    }
    bytes.copy(this.#bytes, this.#length)
    this.#length = length
  }

  #readHead(): boolean {
    const end = this.#bytes.subarray(0, this.#length).indexOf(HEAD_END)
    if (end < 0) return false
    const head = this.#bytes.toString('latin1', 0, end)
    this.status = Number(head.slice(9, 12))
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    this.#bodyLength = length === undefined ? undefined : Number(length)
    this.#bodyAt = end + HEAD_END.length
    return true
  }
}

function unchunk(raw: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = raw.indexOf('\r\n', at)
    const size = Number.parseInt(raw.toString('latin1', at, lineEnd), 16)
    if (lineEnd < 0 || Number.isNaN(size)) throw new Error('The chunks of the answer are malformed.')
    if (size === 0) return Buffer.concat(parts)
    parts.push(raw.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}
