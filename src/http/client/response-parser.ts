// Reads one answer of an upstream from its bytes, however they are cut. Strict: an answer that two readers could
// understand differently is broken, or at least the last one of its connection. Knows no socket.

import { bounds } from '../../base/bounds.ts'
import { ChunkedBody } from './chunked-body.ts'
import type { Framing } from './response-head.ts'
import { ResponseHead, readFraming } from './response-head.ts'

const LF = 0x0a
const CR = 0x0d
const HEAD_END = '\r\n\r\n'
const HEAD_START = 'HTTP/1.'

export type Stage = 'head' | 'body' | 'whole' | 'broken'

export class ResponseParser {
  stage: Stage = 'head'
  /** Set once it is read, and stays when the body breaks. */
  head: ResponseHead | undefined
  /** In a few words, when it is broken. */
  fault = ''
  #framing: Framing | undefined
  #chunks: ChunkedBody | undefined
  /** Of a body whose length was told. */
  #left = 0
  #surplus = false
  /** The beginning of a head that came in pieces, in the first `#heldBytes` of it. */
  #held: Buffer | undefined
  #heldBytes = 0
  /** Of the informational answers before. */
  #headBytes = 0

  /** Whether the next answer of the connection begins, beyond doubt, with the next byte. */
  get isReusable(): boolean {
    return this.stage === 'whole' && this.#framing!.certain && !this.#surplus
  }

  /** How long the body will be, if that was told. */
  get announcedBytes(): number | undefined {
    return this.#framing?.kind === 'length' ? this.#framing.length : undefined
  }

  /** The part of the body that these bytes hold. They may be moved about, and belong to the answer from now on. */
  push(bytes: Buffer): Buffer | undefined {
    if (this.stage === 'head') return this.#pushHead(bytes)
    if (this.stage === 'body') return this.#pushBody(bytes, 0)
    if (bytes.length > 0) this.#surplus = true
    return undefined
  }

  /** The connection has ended in good order. */
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
      if (this.#headBytes + after - start > bounds.answerHeadBytesMax) return this.#break('a head that is too long')
      if (end < 0) return this.#keepHead(bytes, start, from)
      this.#headBytes += after - start
      this.#readHead(bytes.toString('latin1', start, after))
      if (this.stage !== 'head') return this.stage === 'broken' ? undefined : this.#pushBody(bytes, after)
      start = from = after
    }
  }

  /** Not yet whole. What can never become a head is told at once, and not when its time is over. */
  #keepHead(bytes: Buffer, start: number, from: number): undefined {
    const begun = bytes.toString('latin1', start, start + HEAD_START.length)
    if (!HEAD_START.startsWith(begun)) return this.#break('not HTTP/1')
    for (let at = bytes.indexOf(LF, from); at >= 0; at = bytes.indexOf(LF, at + 1)) {
      if (at === start || bytes[at - 1] !== CR) return this.#break('a head that is not well formed')
    }
    if (this.#held !== undefined && start === 0) return undefined
    this.#held = undefined
    this.#heldBytes = 0
    this.#hold(bytes.subarray(start))
  }

  /** Room doubles, so that a head in a thousand crumbs is not copied a thousand times. */
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
    if (head.status === 101) return this.#break('another protocol, unasked')
    if (head.status < 200) return // informational; the answer follows
    const framing = readFraming(head)
    if (framing === undefined) return this.#break('a body of unclear length')
    this.head = head
    this.#framing = framing
    this.#held = undefined
    this.#left = framing.length
    if (framing.kind === 'chunked') this.#chunks = new ChunkedBody()
    const empty = framing.kind === 'none' || (framing.kind === 'length' && framing.length === 0)
    this.stage = empty ? 'whole' : 'body'
  }

  #pushBody(bytes: Buffer, from: number): Buffer | undefined {
    if (this.#chunks !== undefined) return this.#pushChunks(this.#chunks, bytes, from)
    const here = bytes.length - from
    if (this.#framing!.kind === 'until_close') return here === 0 ? undefined : bytes.subarray(from)
    const taken = Math.min(here, this.#left)
    this.#left -= taken
    if (this.#left === 0) this.stage = 'whole'
    if (taken < here) this.#surplus = true
    if (taken === 0) return undefined
    return taken === bytes.length ? bytes : bytes.subarray(from, from + taken)
  }

  #pushChunks(chunks: ChunkedBody, bytes: Buffer, from: number): Buffer | undefined {
    const data = chunks.take(bytes, from)
    if (chunks.isBroken) this.#break('broken chunks')
    if (!chunks.isWhole) return data
    this.stage = 'whole'
    if (chunks.taken < bytes.length) this.#surplus = true
    return data
  }
}
