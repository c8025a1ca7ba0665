// Decompresses request bodies, account after account and within a size. A body that becomes larger than a prompt is
// decompressed by a thread of its own, which rests several times as long as it has worked, because on one core other calls
// are slower meanwhile. It has a queue of its own, so that small bodies do not wait for large ones.

import { bounds } from '../../base/bounds.ts'
import type { FairQueueJob } from '../../base/collections/fair-queue.ts'
import { FairQueue } from '../../base/collections/fair-queue.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { WORK_RESTS, waitForBodyThread } from '../../base/threads/body-wait.ts'
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
  /** Bodies that wait for being decompressed up to the size of a prompt; and those that have become larger. */
  readonly #prompts = new FairQueue(bounds.decodingsMax, bounds.decodingsOfAccountMax)
  readonly #large = new FairQueue(1, 1)
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
    const waiter = { what: 'compressed bodies', throwIfGone: () => body.throwIfGone() }
    const decoded = await waitForBodyThread(this.#deadlines, waiter, signal => this.#decode(body, decodedMax, signal))
    if (decoded === 'too_large') throw tooLarge('while decoding', decodedMax)
    if (decoded === 'invalid') throw new Refusal('encoding_invalid', 'while decoding')
    return decoded
  }

  close(): void {
    this.#thread.stop(stopped())
  }

  async #decode(body: EncodedBody, decodedMax: number, signal: AbortSignal): Promise<Uint8Array | DecodeFailure> {
    const { encoding, bytes } = body
    const inTurn = <T>(queue: FairQueue, run: () => Promise<T>, rest?: Pick<FairQueueJob<T>, 'cooldownAfter'>) =>
      queue.run(body.owner, {
        ...rest,
        signal,
        run: () => {
          body.throwIfGone()
          return run()
        },
      })
    const promptMax = Math.min(decodedMax, bounds.promptBytesMax)
    const prompt = await inTurn(this.#prompts, () => decode(encoding, bytes, promptMax))
    if (prompt !== 'too_large' || promptMax === decodedMax) return prompt
    const large = await inTurn(this.#large, () => this.#thread.run('decode', { encoding, bytes, decodedMax }), {
      cooldownAfter: ({ workMs }) => ({ ownerMs: WORK_RESTS * workMs, totalMs: WORK_RESTS * workMs }),
    })
    return large.decoded
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
