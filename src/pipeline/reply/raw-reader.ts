// Reads an answer of raw bytes, such as audio. Its last bytes are held back until the call is settled.

import type { IncomingResponse, ResponsePiece } from '../../http/client/request.ts'
import type { Exchange } from '../exchange.ts'
import { noteFrame } from '../settle/usage-meter.ts'
import type { AnswerReader, ReadFrame } from './stream-reader.ts'
import { readPieces } from './stream-reader.ts'

/** Reads an answer piece by piece. */
export type StreamReader = Pick<AnswerReader, 'next' | 'take' | 'forward' | 'discard' | 'finish' | 'missingEnd'> & {
  /** Raw bytes cannot carry an error: the connection is closed instead. */
  readonly isRaw?: boolean
} & Partial<Pick<AnswerReader, 'endEarly'>>

const nothing = Buffer.alloc(0)

/** This many bytes are always held back, until it is known whether they are the end. */
const TAIL_BYTES = 1_024

export class RawReader implements StreamReader {
  readonly isRaw = true
  readonly #incoming: IncomingResponse
  readonly #exchange: Exchange
  #tail = nothing

  constructor(incoming: IncomingResponse, exchange: Exchange) {
    this.#incoming = incoming
    this.#exchange = exchange
  }

  next(): Promise<ResponsePiece> {
    return this.#incoming.read()
  }

  async forward(pass: (frames: readonly ReadFrame[]) => boolean): Promise<boolean> {
    const goesOn = await readPieces(this.#incoming, value => pass(this.take({ value })))
    if (!goesOn) pass(this.take({}))
    return goesOn
  }

  take({ value }: ResponsePiece): readonly ReadFrame[] {
    if (value === undefined) return this.#tail.length === 0 ? [] : [this.#metered(this.#tail, 'terminal')]
    const all = Buffer.concat([this.#tail, value])
    const passing = Math.max(0, all.length - TAIL_BYTES)
    this.#tail = all.subarray(passing)
    return passing === 0 ? [] : [this.#metered(all.subarray(0, passing), 'content')]
  }

  #metered(bytes: Buffer, kind: 'content' | 'terminal'): ReadFrame {
    const reading = { kind, outputBytes: bytes.length, finishes: kind === 'terminal' ? 1 : 0 }
    noteFrame(this.#exchange.attempt.meter, reading, 1)
    return { bytes, reading }
  }

  discard(): void {
    this.#incoming.discard()
  }

  /** The terminal piece is known only at the end of the body, so nothing follows it. */
  finish(): Promise<void> {
    return Promise.resolve()
  }

  missingEnd(): Buffer {
    return nothing
  }
}
