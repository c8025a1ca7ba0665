// Parses one response of an upstream from its bytes, however they are split. Strict: a response that two parsers could
// read differently is an error, or at least the last response on its connection. This file does not know sockets.

import { bounds } from '../../base/bounds.ts'
import { ChunkedBody } from './chunked-body.ts'
import type { ResponseFraming } from './response-head.ts'
import { ResponseHead, readFraming } from './response-head.ts'

const LF = 0x0a
const CR = 0x0d
const HEAD_END = '\r\n\r\n'
const HEAD_START = 'HTTP/1.'

export type ResponseStage = 'head' | 'body' | 'whole' | 'broken'

export class ResponseParser {
  stage: ResponseStage = 'head'
  /** Set once the head is read; stays set if the body is broken. */
  head: ResponseHead | undefined
  /** What is wrong, in stage `broken`. */
  fault = ''
  #framing: ResponseFraming | undefined
  #chunks: ChunkedBody | undefined
  /** The bytes that are left of a body with Content-Length. */
  #left = 0
  /** Bytes arrived after the end of the response, or the connection was closed. */
  #surplus = false
  /** The beginning of a head that arrives in pieces, in the first `#heldBytes` bytes of this buffer. */
  #held: Buffer | undefined
  #heldBytes = 0
  /** The size of the informational heads (1xx) before. */
  #headBytes = 0

  /** Whether the next response certainly begins with the next byte, so that the connection can be reused. */
  get isReusable(): boolean {
    return this.stage === 'whole' && this.#framing!.isCertain && !this.#surplus
  }

  /** The Content-Length of the body, if it has one. */
  get announcedBytes(): number | undefined {
    return this.#framing?.kind === 'length' ? this.#framing.length : undefined
  }

  /** Returns the part of the body in these bytes. Changes the buffer, which the caller must not use any more. */
  push(bytes: Buffer): Buffer | undefined {
    if (this.stage === 'head') return this.#pushHead(bytes)
    if (this.stage === 'body') return this.#pushBody(bytes, 0)
    if (bytes.length > 0) this.#surplus = true
    return undefined
  }

  /** The connection was closed in the normal way. */
  end(): void {
    if (this.stage === 'body' && this.#framing!.kind === 'until_close') this.stage = 'whole'
    else if (this.stage === 'head') this.#break('closed before the end of its head')
    else if (this.stage === 'body') this.#break('closed before the end of its body')
    this.#surplus = true
  }

  #break(fault: string): undefined {
    this.stage = 'broken'
    this.fault = fault
    this.#held = undefined
  }

  #pushHead(given: Buffer): Buffer | undefined {
    let bytes = given
    let from = 0
    if (this.#held !== undefined) {
      from = Math.max(0, this.#heldBytes - HEAD_END.length + 1)
      bytes = this.#hold(given)
    }
    for (let start = 0; ; ) {
      const end = bytes.indexOf(HEAD_END, from, 'latin1')
      const after = end < 0 ? bytes.length : end + HEAD_END.length
      if (this.#headBytes + after - start > bounds.responseHeadBytesMax) return this.#break('a head that is too long')
      if (end < 0) return this.#holdHead(bytes, start, from)
      this.#headBytes += after - start
      this.#readHead(bytes.toString('latin1', start, after))
      if (this.stage !== 'head') return this.stage === 'broken' ? undefined : this.#pushBody(bytes, after)
      start = from = after
    }
  }

  /** The head is incomplete. Bytes that can never become a head are reported now, not after a timeout. */
  #holdHead(bytes: Buffer, start: number, from: number): undefined {
    const beginning = bytes.toString('latin1', start, start + HEAD_START.length)
    if (!HEAD_START.startsWith(beginning)) return this.#break('not HTTP/1')
    for (let at = bytes.indexOf(LF, from); at >= 0; at = bytes.indexOf(LF, at + 1)) {
      if (at === start || bytes[at - 1] !== CR) return this.#break('a head that is not well formed')
    }
    if (this.#held !== undefined && start === 0) return undefined
    this.#held = undefined
    this.#heldBytes = 0
    this.#hold(bytes.subarray(start))
  }

  /** The buffer doubles, so that a head in a thousand small pieces is not copied a thousand times. */
  #hold(bytes: Buffer): Buffer {
    const length = this.#heldBytes + bytes.length
    if (this.#held === undefined || this.#held.length < length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length * 2, 512))
      this.#held?.copy(larger, 0, 0, this.#heldBytes)
      this.#held = larger
    }
    bytes.copy(this.#held, this.#heldBytes)
    this.#heldBytes = length
    return this.#held.subarray(0, length)
  }

  #readHead(text: string): void {
    const head = ResponseHead.read(text)
    if (head === undefined) return this.#break('a head that is not well formed')
    if (head.status === 101) return this.#break('an unrequested switch of protocols (101)')
    if (head.status < 200) return // informational; the final head follows
    const framing = readFraming(head)
    if (framing === undefined) return this.#break('a body of unclear length')
    this.head = head
    this.#framing = framing
    this.#held = undefined
    this.#left = framing.length
    if (framing.kind === 'chunked') this.#chunks = new ChunkedBody()
    const isEmpty = framing.kind === 'none' || (framing.kind === 'length' && framing.length === 0)
    this.stage = isEmpty ? 'whole' : 'body'
  }

  #pushBody(bytes: Buffer, from: number): Buffer | undefined {
    if (this.#chunks !== undefined) return this.#pushChunks(this.#chunks, bytes, from)
    const available = bytes.length - from
    if (this.#framing!.kind === 'until_close') return available === 0 ? undefined : bytes.subarray(from)
    const taken = Math.min(available, this.#left)
    this.#left -= taken
    if (this.#left === 0) this.stage = 'whole'
    if (taken < available) this.#surplus = true
    if (taken === 0) return undefined
    return taken === bytes.length ? bytes : bytes.subarray(from, from + taken)
  }

  #pushChunks(chunks: ChunkedBody, bytes: Buffer, from: number): Buffer | undefined {
    const data = chunks.take(bytes, from)
    if (chunks.isBroken) this.#break('broken chunks')
    if (!chunks.isComplete) return data
    this.stage = 'whole'
    if (chunks.consumed < bytes.length) this.#surplus = true
    return data
  }
}
