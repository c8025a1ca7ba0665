// Reads an answer that is nothing but bytes, such as sound. Its last piece is its last word: it waits until the call
// is settled.

import type { Incoming, Piece } from '../http/outgoing.ts'
import { viewOf } from '../http/outgoing.ts'
import type { AnswerReader, ReadFrame } from './answer-reader.ts'
import type { Exchange } from './exchange.ts'
import { noteFrame } from './meter.ts'

/** Whatever gives an answer piece by piece. */
export type StreamReader = Pick<AnswerReader, 'next' | 'take' | 'discard' | 'finish' | 'unsaidEnd'> & {
  /** An error cannot be said in its bytes: the connection is broken off instead. */
  readonly isRaw?: boolean
}

const nothing = Buffer.alloc(0)

export class RawReader implements StreamReader {
  readonly isRaw = true
  readonly #incoming: Incoming
  readonly #exchange: Exchange
  #last: Buffer | undefined

  constructor(incoming: Incoming, exchange: Exchange) {
    this.#incoming = incoming
    this.#exchange = exchange
  }

  next(): Promise<Piece> {
    return this.#incoming.read()
  }

  /** Each piece when the next one is there. */
  take({ value }: Piece): readonly ReadFrame[] {
    const bytes = this.#last
    this.#last = value && viewOf(value)
    if (bytes === undefined) return []
    const kind = value === undefined ? 'terminal' : 'content'
    const reading = { kind, outputBytes: bytes.length, finishes: value === undefined ? 1 : 0 } as const
    noteFrame(this.#exchange.meter, reading, 1)
    return [{ bytes, reading }]
  }

  discard(): void {
    this.#incoming.discard()
  }

  /** Its terminal piece is known by the end that came behind it. */
  finish(): Promise<void> {
    return Promise.resolve()
  }

  unsaidEnd(): Buffer {
    return nothing
  }
}
