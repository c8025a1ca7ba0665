// Decompresses request bodies, account after account and within a size. A body that becomes larger than a prompt is
// decompressed by a thread of its own, which runs only while the core is idle.

import { bounds } from '../../base/bounds.ts'
import { FairQueue } from '../../base/collections/fair-queue.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { Thread } from '../../base/threads/thread.ts'
import type { DecodeMethods } from './decode-thread.ts'
import type { DecodeFailure, Encoding } from './encodings.ts'
import { decode } from './encodings.ts'

export interface EncodedBody {
  readonly encoding: Encoding
  readonly bytes: Uint8Array
  /** The account that sent it. */
  readonly owner: string
  /** The size after decompression. */
  readonly bytesMax: number
  throwIfGone(): void
}

const IDLE_MS = 60_000

export class BodyDecoder {
  readonly #deadlines: Deadlines
  readonly #queue = new FairQueue(bounds.decodingsMax, bounds.decodingsOfAccountMax)
  readonly #thread: Thread<DecodeMethods>

  /** `onFault` is called when the thread has died. The next body starts another one. */
  constructor(deadlines: Deadlines, onFault: (detail: string) => void) {
    this.#deadlines = deadlines
    const onDeath = (detail: string): Error => {
      this.close()
      onFault(detail)
      return stopped()
    }
    const url = new URL('./decode-thread.ts', import.meta.url)
    this.#thread = new Thread({ url, idleMs: IDLE_MS, onFailure: onDeath, onDeath })
  }

  async decode(body: EncodedBody): Promise<Uint8Array> {
    const decodedMax = decodedBytesMax(body.bytes.length, body.bytesMax)
    const decoding = this.#queue.run(body.owner, {
      throwIfCancelled: () => body.throwIfGone(),
      run: () => this.#decode(body, decodedMax),
    })
    const timeout = (): Refusal => new Refusal('overloaded', 'decoding')
    const decoded = await this.#deadlines.within(bounds.bodyWorkerMsMax, decoding, timeout)
    if (decoded === 'too_large') throw tooLarge('while decoding', decodedMax)
    if (decoded === 'invalid') throw new Refusal('encoding_invalid', 'while decoding')
    return decoded
  }

  close(): void {
    this.#thread.stop(stopped())
  }

  async #decode({ encoding, bytes }: EncodedBody, decodedMax: number): Promise<Uint8Array | DecodeFailure> {
    const promptMax = Math.min(decodedMax, bounds.promptBytesMax)
    const prompt = await decode(encoding, bytes, promptMax)
    if (prompt !== 'too_large' || promptMax === decodedMax) return prompt
    return await this.#thread.run('decode', { encoding, bytes, decodedMax })
  }
}

const stopped = (): Refusal => new Refusal('draining', 'compressed bodies')

export const tooLarge = (detail: string, bytesMax: number): Refusal =>
  new Refusal('body_too_large', detail, { hint: hintOf('body_bytes', { max: bytesMax }) })

/**
 * The largest size after decompression. Real prompts compress to about a tenth. A body that compresses to less than a
 * hundredth is an attack: its sender pays for some bytes, and the gateway would have to unpack and read 32 MiB.
 */
export const decodedBytesMax = (encodedBytes: number, bytesMax: number): number =>
  Math.min(bytesMax, Math.max(bounds.decodedBytesMin, encodedBytes * bounds.decodedRatioMax))
