// Limits the memory of media that calls have fetched: of all accounts, and of one. The bytes count while they arrive, and
// until the call has its answer. A call that would exceed a limit is refused, because what others hold is in use.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'

export interface MediaMemoryMax {
  readonly ownBytesMax: number
  readonly bytesMax: number
}

/** A byte of media takes this many of memory: it is held as base64 text, and again in the request. */
const COPIES = 3
/** The memory for one call with the most media is always granted. */
const ONE_CALL_BYTES = COPIES * bounds.mediaPerCallBytesMax
const RETRY_MS = 1_000

export class MediaMemory {
  readonly #max: MediaMemoryMax
  readonly #ofAccounts = new Map<number, number>()
  #bytes = 0

  constructor({ ownBytesMax, bytesMax }: MediaMemoryMax) {
    this.#max = { ownBytesMax: Math.max(ONE_CALL_BYTES, ownBytesMax), bytesMax: Math.max(ONE_CALL_BYTES, bytesMax) }
  }

  open(accountId: number): MediaLease {
    return new MediaLease(this, accountId)
  }

  /** The memory of all accounts together. */
  get bytes(): number {
    return this.#bytes
  }

  // The methods below are called by leases.

  check(accountId: number, more: number): Refusal | undefined {
    if ((this.#ofAccounts.get(accountId) ?? 0) + more > this.#max.ownBytesMax) {
      return tooMuch('concurrency_exceeded', 'the media of your calls at the same time are too large')
    }
    return this.#bytes + more > this.#max.bytesMax
      ? tooMuch('overloaded', 'the media of all calls at the same time are too large')
      : undefined
  }

  change(accountId: number, more: number): void {
    this.#bytes += more
    const bytes = (this.#ofAccounts.get(accountId) ?? 0) + more
    if (bytes === 0) this.#ofAccounts.delete(accountId)
    else this.#ofAccounts.set(accountId, bytes)
  }
}

const tooMuch = (code: 'concurrency_exceeded' | 'overloaded', why: string): Refusal =>
  new Refusal(code, why, { retryAfterMs: RETRY_MS, hint: hintOf('call_media', { why }) })

/** The memory that the media of one call take. */
export class MediaLease {
  readonly #memory: MediaMemory
  readonly #accountId: number
  #bytes = 0
  #isClosed = false

  constructor(memory: MediaMemory, accountId: number) {
    this.#memory = memory
    this.#accountId = accountId
  }

  /** Counts further bytes of media. Returns why they may not be held; then they do not count. */
  add(mediaBytes: number): Refusal | undefined {
    if (this.#isClosed) return undefined // the fetch is being cancelled
    const more = COPIES * mediaBytes
    const refusal = this.#memory.check(this.#accountId, more)
    if (refusal !== undefined) return refusal
    this.#bytes += more
    this.#memory.change(this.#accountId, more)
    return undefined
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#memory.change(this.#accountId, -this.#bytes)
  }
}
