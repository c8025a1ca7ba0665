// Reads large bodies, JSON and forms, in a worker thread. The result is rebuilt on the thread that serves calls, which
// takes time that depends on the number of values. This time is estimated and charged to the account that sent the
// body: large bodies of one account get at most a tenth of that thread, those of all accounts at most half.
//
// The worker starts when it is needed and ends when it is idle.

import { bounds } from '../../base/bounds.ts'
import type { SlotCooldown } from '../../base/collections/fair-queue.ts'
import { FairQueue } from '../../base/collections/fair-queue.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { Thread } from '../../base/threads/thread.ts'
import type { ParsedBody } from './json-body.ts'
import { cacheParsedBody } from './json-body.ts'
import { cacheForm } from './large-form.ts'
import type { LargeBody, LargeBodyMethods } from './large-json-thread.ts'

const hashes = new WeakMap<Uint8Array, string>()

/** The SHA-256 of a large body in hex, if the worker has computed it. */
export const getBodyHash = (body: Uint8Array): string | undefined => hashes.get(body)

export interface LargeBodyReaderParts {
  readonly deadlines: Deadlines
  /** Called when the worker has died. The next large body starts another one. */
  onFault(detail: string): void
}

/** The account that a body belongs to, and a check whether the caller still waits. */
export interface LargeBodyOwner {
  readonly name: string
  throwIfGone(): void
}

const IDLE_MS = 60_000
const ACCOUNT_REST = 9
const TOTAL_REST = 1

export class LargeBodyReader {
  readonly #deadlines: Deadlines
  readonly #queue = new FairQueue(1, 1)
  readonly #thread: Thread<LargeBodyMethods>

  constructor({ deadlines, onFault }: LargeBodyReaderParts) {
    this.#deadlines = deadlines
    const onDeath = (detail: string): Error => {
      this.close()
      onFault(detail)
      return stopped()
    }
    // Reading has no expected errors: after any error the worker is replaced.
    const url = new URL('./large-json-thread.ts', import.meta.url)
    this.#thread = new Thread({ url, idleMs: IDLE_MS, onFailure: onDeath, onDeath })
  }

  /**
   * Returns the same bytes, with their parsed form cached. `body` is unusable afterwards: its memory is transferred.
   */
  async read(body: Buffer, owner: LargeBodyOwner, formType?: string): Promise<Buffer> {
    const reply = this.#queue.run(owner.name, {
      throwIfCancelled: () => owner.throwIfGone(),
      run: () => this.#ask(body, formType),
      cooldownAfter: ({ found }) => restAfter(found, body.length),
    })
    const timeout = (): Refusal =>
      new Refusal('overloaded', 'large bodies wait too long in their queue', { retryAfterMs: 2_000 })
    const { bytes, found, form, hash } = await this.#deadlines.within(bounds.bodyWorkerMsMax, reply, timeout)
    const parsedBody = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (found !== undefined) cacheParsedBody(parsedBody, found)
    if (form !== undefined) cacheForm(parsedBody, form)
    hashes.set(parsedBody, hash)
    return parsedBody
  }

  close(): void {
    this.#thread.stop(stopped())
  }

  #ask(body: Buffer, formType: string | undefined): Promise<LargeBody> {
    // The memory is transferred to the worker. If the body fills most of its buffer, the whole buffer is transferred.
    const ownsBuffer = body.byteLength * 2 >= body.buffer.byteLength
    const bytes = ownsBuffer ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength) : new Uint8Array(body)
    return this.#thread.run('read', { bytes, formType }, { transfer: [bytes.buffer as ArrayBuffer] })
  }
}

const stopped = (): Refusal => new Refusal('draining', 'large bodies')

/** The approximate time to rebuild and check one of each, in microseconds. */
const COST_US = { names: 3, containers: 0.5, values: 0.1, bytes: 0.0005 }

/** Estimates how long a body occupies the thread that serves calls, in milliseconds. */
export function estimateServingMs(found: ParsedBody | undefined, bytes: number): number {
  const noCounts = { names: 0, containers: 0, values: 0 }
  const { names, containers, values } = found !== undefined && 'counts' in found ? found.counts : noCounts
  const costUs =
    names * COST_US.names + containers * COST_US.containers + values * COST_US.values + bytes * COST_US.bytes
  return costUs / 1_000
}

function restAfter(found: ParsedBody | undefined, bytes: number): SlotCooldown {
  const costMs = estimateServingMs(found, bytes)
  return { ownerMs: ACCOUNT_REST * costMs, totalMs: TOTAL_REST * costMs }
}
