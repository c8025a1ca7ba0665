// Starts the thread that sums up records, tracks its progress, and trims the record log behind it.

import type { Writer } from '../engine/writer.ts'
import type { StatisticsMessage, StatisticsPaths, StatisticsReply } from './statistics-thread.ts'

export interface StatisticsWorkerParts extends StatisticsPaths {
  readonly writer: Pick<Writer, 'run'>
  onError(detail: string): void
}

/** The progress of the statistics. */
export interface StatisticsProgress {
  /** The last row of the log that is in the statistics; undefined until the first step. */
  readonly seq: number | undefined
  /** The share of the records from before the log that has been scanned. */
  readonly scanned: number
}

/** The thread starts this long after the gateway, so that it does not slow down the start. */
const START_DELAY_MS = 20_000
/** The log keeps this many summed-up rows, so that an older copy of the statistics can catch up from the log. */
const LOG_ROWS_KEPT = 20_000
const TRIM_ROWS_MIN = 5_000

export class StatisticsWorker {
  readonly #parts: StatisticsWorkerParts
  readonly #timer: ReturnType<typeof setTimeout>
  #thread: Worker | undefined
  #progress: StatisticsProgress = { seq: undefined, scanned: 0 }
  #trimmed = 0
  #trimming: Promise<void> | undefined
  #closed = false
  /** Callers of catchUp() that wait, in their order. */
  #catchUps: PromiseWithResolvers<void>[] = []
  #erases: PromiseWithResolvers<void>[] = []
  #firstStep = Promise.withResolvers<void>()

  constructor(parts: StatisticsWorkerParts) {
    this.#parts = parts
    this.#timer = setTimeout(() => this.#startedThread(), START_DELAY_MS)
    this.#timer.unref()
    this.#firstStep.promise.catch(() => {})
  }

  get progress(): StatisticsProgress {
    return this.#progress
  }

  /** Resolves when there is a statistics file to read, even if older records are still missing in it. */
  async ready(): Promise<void> {
    if (this.#progress.seq !== undefined) return
    this.#startedThread()
    await this.#firstStep.promise
  }

  /** Resolves when all records that are written by now are in the statistics. */
  catchUp(): Promise<void> {
    return this.#ask(this.#catchUps, { catchUp: true })
  }

  /** Removes the name of an end user; its sums stay without a name. */
  eraseEndUser(endUser: string, accountId: number | undefined): Promise<void> {
    return this.#ask(this.#erases, { eraseEndUser: { endUser, accountId } })
  }

  /** Stops the thread, which closes both files. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    const thread = this.#thread
    this.#fail('the statistics were closed')
    if (thread !== undefined) {
      await new Promise<void>(resolve => {
        thread.onmessage = (event: MessageEvent<StatisticsReply>) => 'closed' in event.data && resolve()
        thread.onerror = () => resolve()
        thread.postMessage({ close: true } satisfies StatisticsMessage)
      })
      thread.terminate()
    }
    await this.#trimming
  }

  #ask(queue: PromiseWithResolvers<void>[], message: StatisticsMessage): Promise<void> {
    const waiting = Promise.withResolvers<void>()
    queue.push(waiting)
    this.#startedThread().postMessage(message)
    return waiting.promise
  }

  #startedThread(): Worker {
    this.#thread ??= this.#start()
    return this.#thread
  }

  #start(): Worker {
    const thread = new Worker(new URL('./statistics-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<StatisticsReply>) => this.#receive(event.data)
    thread.onerror = event => {
      this.#thread = undefined // the next request starts another thread
      this.#fail(event.message)
      this.#parts.onError(event.message)
    }
    const { database, statistics } = this.#parts
    thread.postMessage({ open: { database, statistics } } satisfies StatisticsMessage)
    return thread
  }

  #receive(message: StatisticsReply): void {
    if ('step' in message) {
      this.#progress = { seq: message.step.seq, scanned: message.step.scanned }
      this.#firstStep.resolve()
      this.#trimming ??= this.#trim(message.step.seq - LOG_ROWS_KEPT).finally(() => (this.#trimming = undefined))
    } else if ('caughtUp' in message) this.#catchUps.shift()?.resolve()
    else if ('erased' in message) this.#erases.shift()?.resolve()
    else if ('failed' in message) {
      this.#parts.onError(message.failed)
      this.#fail(message.failed)
    }
  }

  async #trim(below: number): Promise<void> {
    if (below - this.#trimmed < TRIM_ROWS_MIN) return
    try {
      const { writer } = this.#parts
      for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('trimLog', { below })).count
      this.#trimmed = below
    } catch {
      // The ledger is overloaded or the disk is full; the rest is trimmed later.
    }
  }

  #fail(detail: string): void {
    const fault = new Error(detail)
    for (const { reject } of [...this.#catchUps.splice(0), ...this.#erases.splice(0), this.#firstStep]) reject(fault)
    this.#firstStep = Promise.withResolvers()
    this.#firstStep.promise.catch(() => {})
  }
}
