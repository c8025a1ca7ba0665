// Starts the thread that sums up records, tracks its progress, and trims the record log behind it.

import { Thread } from '../../base/threads/thread.ts'
import type { Writer } from '../engine/writer.ts'
import type { StatisticsEvent, StatisticsPaths, StatisticsThreadMethods } from './statistics-thread.ts'

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
  readonly #thread: Thread<StatisticsThreadMethods, StatisticsPaths, StatisticsEvent>
  #progress: StatisticsProgress = { seq: undefined, scanned: 0 }
  #trimmed = 0
  #trimming: Promise<void> | undefined
  #closed = false

  constructor(parts: StatisticsWorkerParts) {
    this.#parts = parts
    const { database, statistics, onError } = parts
    this.#thread = new Thread({
      url: new URL('./statistics-thread.ts', import.meta.url),
      setup: () => ({ database, statistics }),
      onEvent: event => this.#receive(event),
      onDeath(detail) {
        onError(detail)
        return new Error(detail)
      },
    })
    this.#timer = setTimeout(() => this.#thread.start(), START_DELAY_MS)
    this.#timer.unref()
  }

  get progress(): StatisticsProgress {
    return this.#progress
  }

  /** Resolves when there is a statistics file to read, even if older records are still missing in it. */
  async ready(): Promise<void> {
    if (this.#progress.seq === undefined) await this.#run('ready', undefined)
  }

  /** Resolves when all records that are written by now are in the statistics. */
  catchUp(): Promise<void> {
    return this.#run('catchUp', undefined)
  }

  /** Removes the name of an end user; its sums stay without a name. */
  eraseEndUser(endUser: string, accountId: number | undefined): Promise<void> {
    return this.#run('eraseEndUser', { endUser, accountId })
  }

  /** Stops the thread, which closes both files. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#thread.rejectWaiting(closedError())
    if (this.#thread.isRunning) await this.#thread.run('close', undefined).catch(() => {})
    this.#thread.stop()
    await this.#trimming
  }

  #run<Name extends keyof StatisticsThreadMethods>(
    name: Name,
    input: Parameters<StatisticsThreadMethods[Name]>[0],
  ): Promise<void> {
    return this.#closed ? Promise.reject(closedError()) : this.#thread.run(name, input)
  }

  #receive(event: StatisticsEvent): void {
    if ('failed' in event) return this.#parts.onError(event.failed)
    const { seq, scanned } = event.step
    this.#progress = { seq, scanned }
    this.#trimming ??= this.#trim(seq - LOG_ROWS_KEPT).finally(() => (this.#trimming = undefined))
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
}

const closedError = (): Error => new Error('the statistics were closed')
