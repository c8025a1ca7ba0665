// The statistics on PostgreSQL. One process at a time sums up records, in a thread that it starts for this; any process
// may ask to catch up. Two processes that sum up at the same time do no harm (roll-up.ts).

import { Thread } from '../../base/threads/thread.ts'
import type { Jobs, StatisticsStore } from '../engine/store-engine.ts'
import type { StatisticsProgress } from '../statistics/statistics-worker.ts'
import type { PoolOptions } from './pools.ts'
import type { RollUpThreadMethods } from './roll-up-thread.ts'

export interface PostgresStatisticsParts {
  readonly pool: PoolOptions
  readonly jobs: Pick<Jobs, 'isOurs'>
  onError(detail: string): void
}

/** The first step is made this long after the start, so that it does not slow down the start. */
const START_DELAY_MS = 2_000
const CHECK_EVERY_MS = 1_000
/** How often a process that does not sum up checks whether it should. */
const ASK_EVERY_MS = 5_000
const PRUNE_EVERY_MS = 3_600_000
const ERROR_PAUSE_MS = 30_000

export class PostgresStatistics implements StatisticsStore {
  readonly #parts: PostgresStatisticsParts
  readonly #thread: Thread<RollUpThreadMethods, PoolOptions>
  #timer: ReturnType<typeof setTimeout> | undefined
  #prunedMs = Number.NEGATIVE_INFINITY
  #closed = false

  constructor(parts: PostgresStatisticsParts, startDelayMs = START_DELAY_MS) {
    this.#parts = parts
    this.#thread = new Thread({
      url: new URL('./roll-up-thread.ts', import.meta.url),
      setup: () => parts.pool,
      isUnreferenced: true,
    })
    this.#runIn(startDelayMs)
  }

  /** No row of the log is in the statistics: summing up deletes it. And no records are older than the log. */
  get progress(): StatisticsProgress {
    return { seq: 0, scanned: 1 }
  }

  /** The tables exist from the start. */
  async ready(): Promise<void> {}

  /** Resolves when all records that are written by now are in the statistics. This process sums up what is missing. */
  catchUp(): Promise<void> {
    return this.#run('catchUp', undefined)
  }

  /** Removes the name of an end user; its sums stay without a name. */
  eraseEndUser(endUser: string, accountId: number | undefined): Promise<void> {
    return this.#run('eraseEndUser', { endUser, accountId })
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#thread.rejectWaiting(closedError())
    if (this.#thread.isRunning) await this.#thread.run('close', undefined).catch(() => {})
    this.#thread.stop()
  }

  #run<Name extends keyof RollUpThreadMethods>(
    name: Name,
    input: Parameters<RollUpThreadMethods[Name]>[0],
  ): Promise<ReturnType<RollUpThreadMethods[Name]>> {
    return this.#closed ? Promise.reject(closedError()) : this.#thread.run(name, input)
  }

  #runIn(ms: number): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => void this.#tick().then(pauseMs => this.#runIn(pauseMs)), ms)
    this.#timer.unref()
  }

  /** Returns how long to wait before the next tick. */
  async #tick(): Promise<number> {
    try {
      if (!(await this.#parts.jobs.isOurs('statistics'))) return ASK_EVERY_MS
      const startMs = performance.now()
      const isWhole = await this.#run('step', undefined)
      if (!isWhole) return performance.now() - startMs
      if (startMs - this.#prunedMs > PRUNE_EVERY_MS) {
        this.#prunedMs = startMs
        await this.#run('prune', undefined)
      }
      return CHECK_EVERY_MS
    } catch (fault) {
      if (!this.#closed) this.#parts.onError((fault as Error).message)
      return ERROR_PAUSE_MS
    }
  }
}

const closedError = (): Error => new Error('the statistics were closed')
