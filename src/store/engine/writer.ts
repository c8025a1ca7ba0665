// The near side of the writer thread. Whatever is waiting when the previous commit ends goes into the next one
// (natural group commit), so a busy gateway pays one fsync for many calls and an idle one waits for nobody.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { By, Seen, Stale } from '../audit-log/audited.ts'
import type { AuditedName } from '../audit-log/plans.ts'
import { StoreError } from './database.ts'
import type { Input, OperationName, Result } from './operations.ts'
import { beginning } from './operations.ts'
import type { Done, FromWriter, Job, ToWriter, WriterOptions, WriterStart } from './writer-messages.ts'

interface Waiting {
  readonly job: Job
  readonly sinceMs: number
  /** Told that it is late: what becomes of it is no longer waited for. */
  late: boolean
  resolve(result: unknown): void
  reject(fault: Error): void
}

const LOOK_MS = 250
/** A ledger that takes longer than this for one batch is not well, nor for this long after it could not write one. */
const UNWELL_MS = 1_000
/** How long an operation has waited that was queued then. */
export type WaitedMs = (sinceMs: number) => number

export const waitedSince: WaitedMs = sinceMs => performance.now() - sinceMs

export class Writer {
  readonly #thread: Worker
  /** By this the queue is found to be too old; it bounds no operation that is queued. */
  readonly #waitedMs: WaitedMs
  #queue: Waiting[] = []
  /** Under way in the thread; empty when it is idle. */
  #batch: readonly Waiting[] = []
  #busy = false
  #sentMs = 0
  #full = false
  #failedMs = Number.NEGATIVE_INFINITY
  #onIdle: (() => void) | undefined
  #timer: ReturnType<typeof setInterval> | undefined

  private constructor(thread: Worker, waitedMs: WaitedMs) {
    this.#thread = thread
    this.#waitedMs = waitedMs
  }

  /** Opens, migrates and recovers; nothing else may be using the file. */
  static async open(
    options: WriterOptions,
    onFault: (detail: string) => void,
    waitedMs = waitedSince,
  ): Promise<[Writer, WriterStart]> {
    const thread = new Worker(new URL('./writer-thread.ts', import.meta.url).href)
    const writer = new Writer(thread, waitedMs)
    const start = await new Promise<WriterStart>((resolve, reject) => {
      thread.onmessage = (event: MessageEvent<FromWriter>) => {
        const message = event.data
        if (typeof message === 'string') return
        if ('ready' in message) resolve(message.ready)
        else if ('failed' in message) reject(new StoreError(message.failed))
      }
      thread.onerror = event => reject(new Error(event.message))
      thread.postMessage({ open: options } satisfies ToWriter)
    }).catch(fault => {
      thread.terminate()
      throw fault
    })
    thread.onmessage = (event: MessageEvent<FromWriter>) => {
      const message = event.data
      if (typeof message === 'string') writer.#receive(message)
      else if ('failed' in message) onFault(message.failed) // not of a batch: of the thread itself
    }
    thread.onerror = event => onFault(event.message)
    return [writer, start]
  }

  get queued(): number {
    return this.#queue.length
  }

  /** The disk was full when something was last written. */
  get full(): boolean {
    return this.#full
  }

  /** Told of each batch when it is on the disk: its operations, and how long it took from here and back. */
  onBatch: ((operations: number, ms: number) => void) | undefined

  /** How long the batch under way has taken so far. */
  get busyMs(): number {
    return this.#busy ? performance.now() - this.#sentMs : 0
  }

  /** How long the oldest operation has waited, in the queue or in the batch under way. */
  get ageMs(): number {
    const oldest = this.#batch[0] ?? this.#queue[0]
    return oldest === undefined ? 0 : this.#waitedMs(oldest.sinceMs)
  }

  /** Whether it writes in time: not for long at one batch, and the last one not in vain. */
  get well(): boolean {
    if (this.#full || performance.now() < this.#failedMs + UNWELL_MS) return false
    return this.busyMs < UNWELL_MS
  }

  /**
   * Resolves when the operation is durable, and rejects when that takes too long, although it may still come to
   * pass: operations can be repeated, and a start recovers what a call left behind. When the queue is full, what
   * begins something is refused, without having queued anything; what ends a hold always has a place. What people
   * cause says who they are; with the version that they have seen it is not done to any other.
   */
  run<Name extends Exclude<OperationName, AuditedName>>(name: Name, input: Input<Name>): Promise<Result<Name>>
  run<Name extends AuditedName>(name: Name, input: Input<Name>, by: By & Seen): Promise<Result<Name> | Stale>
  run<Name extends AuditedName>(name: Name, input: Input<Name>, by: By): Promise<Result<Name>>
  run<Name extends OperationName>(name: Name, input: Input<Name>, by?: By & Partial<Seen>): Promise<Result<Name>> {
    const sinceMs = performance.now()
    if (beginning.has(name) && this.#isBehind) {
      return Promise.reject(new Refusal('overloaded', 'the ledger queue is full', { retryAfterMs: 1_000 }))
    }
    return new Promise((resolve, reject) => {
      const job = { name, input, dueMs: Date.now() + bounds.settleMsMax, ...(by !== undefined && { by }) }
      this.#queue.push({ job, sinceMs, late: false, resolve: resolve as Waiting['resolve'], reject })
      this.#timer ??= setInterval(() => this.#rejectLate(), LOOK_MS)
      if (this.#busy) return
      this.#busy = true
      this.#sentMs = sinceMs
      queueMicrotask(() => this.#send())
    })
  }

  get #isBehind(): boolean {
    const oldest = this.#queue[0]
    if (oldest === undefined) return false
    return this.#queue.length >= bounds.ledgerQueueMax || this.#waitedMs(oldest.sinceMs) > bounds.ledgerQueueMsMax
  }

  /** Waits for everything queued, within bounds, then closes the file. */
  async close(): Promise<void> {
    const given = setTimeout(() => this.#onIdle?.(), bounds.settleMsMax)
    if (this.#busy) await new Promise<void>(resolve => (this.#onIdle = resolve))
    clearTimeout(given)
    await new Promise<void>(resolve => {
      this.#thread.onmessage = event => event.data?.closed && resolve()
      this.#thread.postMessage({ close: true } satisfies ToWriter)
      setTimeout(resolve, bounds.settleMsMax).unref()
    })
    clearInterval(this.#timer)
    this.#thread.terminate()
  }

  #send(): void {
    this.#batch = this.#queue.slice(0, bounds.ledgerBatchMax)
    this.#queue = this.#queue.slice(bounds.ledgerBatchMax)
    this.#sentMs = performance.now()
    this.#thread.postMessage(JSON.stringify(this.#batch.map(({ job }) => job)) satisfies ToWriter)
  }

  #receive(message: string): void {
    const results = JSON.parse(message) as Done[]
    this.#full = results.some(([, fault]) => fault?.full === true)
    if (results.every(([, fault]) => fault !== undefined)) this.#failedMs = performance.now()
    const batch = this.#batch
    this.#batch = []
    this.onBatch?.(batch.length, performance.now() - this.#sentMs)
    if (this.#queue.length > 0) this.#send()
    else {
      this.#busy = false
      this.#onIdle?.()
    }
    batch.forEach((waiting, index) => finish(waiting, results[index]!))
  }

  #rejectLate(): void {
    // A little later than the thread gives up, so that what it still did is heard of.
    const earliestMs = performance.now() - bounds.settleMsMax - 2 * LOOK_MS
    for (const waiting of [...this.#batch, ...this.#queue]) {
      if (waiting.sinceMs > earliestMs) break // they stand in the order in which they came
      if (waiting.late) continue
      waiting.late = true
      waiting.reject(new Refusal('storage_away', 'the ledger took too long', { retryAfterMs: 1_000 }))
    }
    if (this.#busy) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

function finish(waiting: Waiting, [result, fault]: Done): void {
  if (waiting.late) return
  if (fault === undefined) waiting.resolve(result)
  else waiting.reject(new Refusal(fault.full ? 'storage_full' : 'storage_away', fault.message, { retryAfterMs: 1_000 }))
}
