// Runs backtests and price checks in a thread of their own, one at a time and for a limited time, so that calls keep the
// other cores.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { BacktestRequest, BacktestResult } from '../../billing/backtest-run.ts'
import type { SourceCheck } from './public-sources.ts'
import type { PriceTrialReply, PriceTrialRequest } from './trial-thread.ts'

export interface PriceTrialParts {
  /** The path of the database. */
  readonly path: string
  /** Folders with provider files, besides the shipped ones. */
  readonly providerFolders: readonly string[]
  dateMs(): number
}

/** Additional time for the start of the thread and for its answer. */
const START_MS = 2_500

export class PriceTrials {
  readonly #parts: PriceTrialParts
  #thread: Worker | undefined

  constructor(parts: PriceTrialParts) {
    this.#parts = parts
  }

  async backtest(ask: Omit<BacktestRequest, 'path' | 'msMax'>): Promise<BacktestResult> {
    const { path } = this.#parts
    const answer = await this.#run({ backtest: { ...ask, path, msMax: bounds.backtestMsMax } })
    return 'backtest' in answer ? answer.backtest : failed(answer)
  }

  async check(): Promise<SourceCheck> {
    const { providerFolders: folders, dateMs } = this.#parts
    const answer = await this.#run({ check: { folders, nowMs: dateMs() } })
    return 'check' in answer ? answer.check : failed(answer)
  }

  close(): void {
    this.#thread?.terminate()
    this.#thread = undefined
  }

  async #run(ask: PriceTrialRequest): Promise<PriceTrialReply> {
    if (this.#thread !== undefined)
      throw new Refusal('overloaded', 'another backtest or price check is running', { retryAfterMs: 5_000 })
    const thread = (this.#thread = new Worker(new URL('./trial-thread.ts', import.meta.url).href))
    const { promise, resolve, reject } = Promise.withResolvers<PriceTrialReply>()
    thread.onmessage = (event: MessageEvent<PriceTrialReply>) => resolve(event.data)
    thread.onerror = event => reject(new Error(event.message))
    const onTimeout = (): void =>
      reject(new Refusal('storage_away', 'the backtest or price check took too long', { retryAfterMs: 5_000 }))
    const timer = setTimeout(onTimeout, bounds.backtestMsMax + START_MS)
    thread.postMessage(ask)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.close()
    }
  }
}

function failed(answer: PriceTrialReply): never {
  throw new Error('failed' in answer ? answer.failed : 'the thread answered another request')
}
