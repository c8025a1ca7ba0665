// Reads large bodies, JSON and forms, in a worker thread. The result is rebuilt on the thread that serves calls, which
// takes time that depends on the number of values. This time is estimated and charged to the account that sent the
// body, so that large bodies get only a share of that thread.
//
// There are two workers. Long prompts are small enough for the first one, which gets a tenth of a busy core. JSON.parse
// can take a quarter of a second for a body of 32 MiB, and would delay all other calls of a gateway with one core. So
// bodies of some megabytes, and bodies with very many values, are read by the second worker, which runs only while the
// core is idle.
//
// A worker starts when it is needed and ends when it is idle.

import { bounds } from '../../base/bounds.ts'
import type { SlotCooldown } from '../../base/collections/fair-queue.ts'
import { FairQueue } from '../../base/collections/fair-queue.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import type { ScanCounts } from '../../base/text/json-bytes.ts'
import { Thread } from '../../base/threads/thread.ts'
import { viewOf } from '../../http/client/http-client.ts'
import type { ParsedBody } from './json-body.ts'
import { cacheParsedBody } from './json-body.ts'
import { cacheForm } from './large-form.ts'
import type { LargeBody, LargeBodyMethods, LargeBodySetup } from './large-json-thread.ts'
import { estimateServingMs } from './serving-cost.ts'

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

/** How many times as long as a body has occupied the serving thread its account waits, and everybody waits. */
interface Rests {
  readonly account: number
  readonly total: number
}

/** One account gets at most a tenth of the serving thread for long prompts, all accounts together a third. */
const PROMPT_RESTS: Rests = { account: 9, total: 2 }
/** For bodies of some megabytes: a twentieth, and together a sixth. */
const HUGE_RESTS: Rests = { account: 19, total: 5 }

export class LargeBodyReader {
  readonly #deadlines: Deadlines
  readonly #prompts: BodyWorker
  readonly #huge: BodyWorker

  constructor({ deadlines, onFault }: LargeBodyReaderParts) {
    this.#deadlines = deadlines
    this.#prompts = new BodyWorker(PROMPT_RESTS, { runsWhenIdle: false }, onFault)
    this.#huge = new BodyWorker(HUGE_RESTS, { runsWhenIdle: true }, onFault)
  }

  /**
   * Returns the same bytes, with their parsed form cached. `body` is unusable afterwards: its memory is transferred.
   */
  async read(body: Buffer, owner: LargeBodyOwner, formType?: string): Promise<Buffer> {
    const reply = this.#readInTurn(body, owner, formType)
    const timeout = (): Refusal =>
      new Refusal('overloaded', 'large bodies wait too long in their queue', { retryAfterMs: 2_000 })
    const { bytes, found, form, hash } = await this.#deadlines.within(bounds.bodyWorkerMsMax, reply, timeout)
    const parsedBody = viewOf(bytes)
    if (found !== undefined) cacheParsedBody(parsedBody, found)
    if (form !== undefined) cacheForm(parsedBody, form)
    if (hash !== undefined) hashes.set(parsedBody, hash)
    return parsedBody
  }

  close(): void {
    this.#prompts.close()
    this.#huge.close()
  }

  async #readInTurn(body: Buffer, owner: LargeBodyOwner, formType: string | undefined): Promise<LargeBody> {
    if (body.length > bounds.promptBytesMax) return await this.#huge.read(body, owner, formType)
    const prompt = await this.#prompts.read(body, owner, formType)
    return prompt.isDense ? await this.#huge.read(viewOf(prompt.bytes), owner, formType) : prompt
  }
}

/** A worker thread and the queue of bodies that wait for it. */
class BodyWorker {
  readonly #rests: Rests
  readonly #queue = new FairQueue(1, 1)
  readonly #thread: Thread<LargeBodyMethods, LargeBodySetup>

  constructor(rests: Rests, setup: LargeBodySetup, onFault: (detail: string) => void) {
    this.#rests = rests
    const onDeath = (detail: string): Error => {
      this.close()
      onFault(detail)
      return stopped()
    }
    // Reading has no expected errors: after any error the worker is replaced.
    const url = new URL('./large-json-thread.ts', import.meta.url)
    this.#thread = new Thread({ url, setup: () => setup, idleMs: IDLE_MS, onFailure: onDeath, onDeath })
  }

  read(body: Buffer, owner: LargeBodyOwner, formType: string | undefined): Promise<LargeBody> {
    const size = body.length
    return this.#queue.run(owner.name, {
      throwIfCancelled: () => owner.throwIfGone(),
      run: () => this.#ask(body, formType),
      cooldownAfter: ({ found }) => restAfter(estimateServingMs(countsOf(found), size), this.#rests),
    })
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

const noCounts: ScanCounts = { values: 0, containers: 0, names: 0, fields: 0 }

const countsOf = (found: ParsedBody | undefined): Readonly<ScanCounts> =>
  found !== undefined && 'counts' in found ? found.counts : noCounts

const restAfter = (costMs: number, { account, total }: Rests): SlotCooldown => ({
  ownerMs: account * costMs,
  totalMs: total * costMs,
})
