// Reads large bodies, JSON and forms, in a worker thread. The result is rebuilt on the thread that serves calls, which
// takes time that depends on the number of values. This time is estimated and charged to the account that sent the
// body, so that large bodies get only a share of that thread.
//
// There are two workers, with a low priority. JSON.parse can take a quarter of a second for a body of 32 MiB; on a
// gateway with one core, other calls are slower meanwhile. So bodies of some megabytes, and bodies with very many values,
// are read by the second worker, which rests several times as long as it has worked. Long prompts do not wait for them.
//
// A worker starts when it is needed and ends when it is idle.

import { bounds } from '../../base/bounds.ts'
import type { SlotCooldown } from '../../base/collections/fair-queue.ts'
import { FairQueue } from '../../base/collections/fair-queue.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import type { ScanCounts } from '../../base/text/json-bytes.ts'
import { WORK_RESTS, waitForBodyThread } from '../../base/threads/body-wait.ts'
import { Thread } from '../../base/threads/thread.ts'
import { viewOf } from '../../http/client/http-client.ts'
import type { ParsedBody } from './json-body.ts'
import { cacheParsedBody } from './json-body.ts'
import { cacheForm } from './large-form.ts'
import type { LargeBody, LargeBodyMethods, LargeBodySetup, ReadBody } from './large-json-thread.ts'
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
  /** How many times as long as the worker has worked everybody waits. */
  readonly work: number
}

/** One account gets at most a tenth of the serving thread for long prompts, all accounts together a third. */
const PROMPT_RESTS: Rests = { account: 9, total: 2, work: 0 }
/** For bodies of some megabytes: a twentieth, and together a sixth. */
export const HUGE_RESTS: Rests = { account: 19, total: 5, work: WORK_RESTS }

/** A body that waits to be read. */
interface WaitingBody {
  readonly body: Buffer
  readonly owner: LargeBodyOwner
  /** The content type of a form. Undefined for JSON. */
  readonly formType: string | undefined
  /** Aborted when nobody waits for the body any more. */
  readonly signal: AbortSignal
}

export class LargeBodyReader {
  readonly #deadlines: Deadlines
  readonly #prompts: BodyWorker
  readonly #huge: BodyWorker

  constructor({ deadlines, onFault }: LargeBodyReaderParts) {
    this.#deadlines = deadlines
    this.#prompts = new BodyWorker(PROMPT_RESTS, { readsDense: false }, onFault)
    this.#huge = new BodyWorker(HUGE_RESTS, { readsDense: true }, onFault)
  }

  /**
   * Returns the same bytes, with their parsed form cached. `body` is unusable afterwards: its memory is transferred.
   */
  async read(body: Buffer, owner: LargeBodyOwner, formType?: string): Promise<Buffer> {
    const waiter = { what: 'large bodies', throwIfGone: () => owner.throwIfGone() }
    const { bytes, found, form, hash } = await waitForBodyThread(this.#deadlines, waiter, signal =>
      this.#readInTurn({ body, owner, formType, signal }),
    )
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

  async #readInTurn(waiting: WaitingBody): Promise<LargeBody> {
    if (waiting.body.length > bounds.promptBytesMax) return await this.#huge.read(waiting)
    const prompt = await this.#prompts.read(waiting)
    return prompt.isDense ? await this.#huge.read({ ...waiting, body: viewOf(prompt.bytes) }) : prompt
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

  async read({ body, owner, formType, signal }: WaitingBody): Promise<LargeBody> {
    const size = body.length
    const read = await this.#queue.run(owner.name, {
      signal,
      run: () => {
        owner.throwIfGone()
        return this.#ask(body, formType)
      },
      cooldownAfter: done => restAfter(done, size, this.#rests),
    })
    return read.body
  }

  close(): void {
    this.#thread.stop(stopped())
  }

  #ask(body: Buffer, formType: string | undefined): Promise<ReadBody> {
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

export function restAfter({ body, workMs }: ReadBody, size: number, { account, total, work }: Rests): SlotCooldown {
  const servingMs = estimateServingMs(countsOf(body.found), size)
  const workRestMs = work * workMs
  return { ownerMs: account * servingMs + workRestMs, totalMs: total * servingMs + workRestMs }
}
