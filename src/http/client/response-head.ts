// The head of an upstream's answer: strictly read, kept as text, looked up only when somebody asks.

// One pass over the whole head. A bare LF, a folded line, a blank before a colon or a control character fails it.
const WELL_FORMED =
  /^HTTP\/1\.[01] [1-5]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[\w!#$%&'*+\-.^`|~]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/

const VERSION_AT = 'HTTP/1.'.length
const STATUS_AT = 'HTTP/1.1 '.length

export class ResponseHead {
  readonly status: number
  /** Such a server closes its connections, or means something else by keeping them. */
  readonly isOld: boolean
  readonly #text: string
  /** Names are compared without case, and lower case is as long as upper case in latin1. */
  readonly #lower: string

  private constructor(text: string) {
    this.status = Number(text.slice(STATUS_AT, STATUS_AT + 3))
    this.isOld = text.charAt(VERSION_AT) === '0'
    this.#text = text
    this.#lower = text.toLowerCase()
  }

  /** From the first line through the empty one, one character a byte; undefined when it is not well formed. */
  static read(text: string): ResponseHead | undefined {
    return WELL_FORMED.test(text) ? new ResponseHead(text) : undefined
  }

  /** Whether anything in it, in lower case, holds these words: what need not be looked for further. */
  mentions(words: string): boolean {
    return this.#lower.includes(words)
  }

  /** All values of that name, joined by commas; null when there is none. */
  header(name: string): string | null {
    const wanted = `\n${name.toLowerCase()}:`
    let joined: string | null = null
    for (let at = this.#lower.indexOf(wanted); at >= 0; at = this.#lower.indexOf(wanted, at + 1)) {
      const value = this.#valueAt(at + wanted.length)
      joined = joined === null ? value : `${joined}, ${value}`
    }
    return joined
  }

  /** Blanks and tabs around a value are not part of it; other white space is, so this is no trim(). */
  #valueAt(from: number): string {
    let start = from
    let end = this.#text.indexOf('\r', from)
    while (isBlank(this.#text.charCodeAt(start))) start++
    while (end > start && isBlank(this.#text.charCodeAt(end - 1))) end--
    return this.#text.slice(start, end)
  }
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

export interface Framing {
  readonly kind: 'none' | 'length' | 'chunked' | 'until_close'
  readonly length: number
  /** Whether nobody on the way can have read it otherwise, so that the connection may serve again. */
  readonly certain: boolean
}

const DIGITS = /^\d{1,15}$/
const CLOSES = /(?:^|[ \t,])close(?:[ \t,]|$)/i

/** Where the body ends. Undefined when the head says what nobody can act on. */
export function readFraming(head: ResponseHead): Framing | undefined {
  const encoding = head.header('transfer-encoding')
  const lengths = head.header('content-length')
  const closes = head.isOld || CLOSES.test(head.header('connection') ?? '')
  if (head.status === 204 || head.status === 304) {
    const bare = encoding === null && (head.status === 304 || lengths === null || lengths === '0')
    return { kind: 'none', length: 0, certain: bare && !closes }
  }
  if (encoding !== null) {
    if (encoding.toLowerCase() !== 'chunked') return undefined
    return { kind: 'chunked', length: 0, certain: lengths === null && !closes }
  }
  if (lengths === null) return { kind: 'until_close', length: 0, certain: false }
  const [first = '', ...others] = lengths.includes(',') ? lengths.split(/[ \t]*,[ \t]*/) : [lengths]
  if (!DIGITS.test(first) || others.some(other => other !== first)) return undefined
  return { kind: 'length', length: Number(first), certain: others.length === 0 && !closes }
}
