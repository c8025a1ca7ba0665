// The head of an upstream's response. It is checked strictly and kept as text; headers are looked up only when needed.

// One pass over the whole head. Refuses a bare LF, a folded line, a blank before a colon, and control characters.
const WELL_FORMED =
  /^HTTP\/1\.[01] [1-5]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[\w!#$%&'*+\-.^`|~]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/

const VERSION_AT = 'HTTP/1.'.length
const STATUS_AT = 'HTTP/1.1 '.length

export class ResponseHead {
  readonly status: number
  /** HTTP/1.0: the connection is not reused. */
  readonly isHttp10: boolean
  readonly #text: string
  /**
   * For comparing names without case. In latin1 the lower case of a text has the same length, so positions are equal.
   */
  readonly #lower: string

  private constructor(text: string) {
    this.status = Number(text.slice(STATUS_AT, STATUS_AT + 3))
    this.isHttp10 = text.charAt(VERSION_AT) === '0'
    this.#text = text
    this.#lower = text.toLowerCase()
  }

  /** Reads a head including its empty line, as latin1; undefined if it is not well formed. */
  static read(text: string): ResponseHead | undefined {
    return WELL_FORMED.test(text) ? new ResponseHead(text) : undefined
  }

  /** Whether the head contains this text, which must be in lower case. A fast check before looking for a header. */
  mentions(words: string): boolean {
    return this.#lower.includes(words)
  }

  /** All values of a header, joined by commas; null if there is none. */
  header(name: string): string | null {
    const lineStart = `\n${name.toLowerCase()}:`
    let joined: string | null = null
    for (let at = this.#lower.indexOf(lineStart); at >= 0; at = this.#lower.indexOf(lineStart, at + 1)) {
      const value = this.#valueAt(at + lineStart.length)
      joined = joined === null ? value : `${joined}, ${value}`
    }
    return joined
  }

  /** Removes blanks and tabs around a value. trim() would also remove other white space, which belongs to the value. */
  #valueAt(from: number): string {
    let start = from
    let end = this.#text.indexOf('\r', from)
    while (isBlank(this.#text.charCodeAt(start))) start++
    while (end > start && isBlank(this.#text.charCodeAt(end - 1))) end--
    return this.#text.slice(start, end)
  }
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

export interface ResponseFraming {
  readonly kind: 'none' | 'length' | 'chunked' | 'until_close'
  readonly length: number
  /** The end of the body is unambiguous, so the connection may be reused. */
  readonly isCertain: boolean
}

const DIGITS = /^\d{1,15}$/
const CLOSES = /(?:^|[ \t,])close(?:[ \t,]|$)/i

/** How the end of the body is found. Undefined if the head is contradictory. */
export function readFraming(head: ResponseHead): ResponseFraming | undefined {
  const encoding = head.header('transfer-encoding')
  const lengths = head.header('content-length')
  const closes = head.isHttp10 || CLOSES.test(head.header('connection') ?? '')
  if (head.status === 204 || head.status === 304) {
    const bare = encoding === null && (head.status === 304 || lengths === null || lengths === '0')
    return { kind: 'none', length: 0, isCertain: bare && !closes }
  }
  if (encoding !== null) {
    if (encoding.toLowerCase() !== 'chunked') return undefined
    return { kind: 'chunked', length: 0, isCertain: lengths === null && !closes }
  }
  if (lengths === null) return { kind: 'until_close', length: 0, isCertain: false }
  const [first = '', ...others] = lengths.includes(',') ? lengths.split(/[ \t]*,[ \t]*/) : [lengths]
  if (!DIGITS.test(first) || others.some(other => other !== first)) return undefined
  return { kind: 'length', length: Number(first), isCertain: others.length === 0 && !closes }
}
