// Tries prices without saying anything: what a change would have come to, and what others ask. In a thread of its own,
// one question at a time, and not for long: calls have the other cores.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { BacktestAsk, BacktestResult } from '../../billing/backtest-run.ts'
import type { SourceCheck } from './public-sources.ts'
import type { FromPrices, ToPrices } from './trial-thread.ts'

export interface PriceTrialParts {
  /** Of the database. */
  readonly path: string
  /** Of provider files, besides those that ship. */
  readonly providerFolders: readonly string[]
  dateMs(): number
}

/** For the thread to begin and for its answer to come. */
const STARTED_MS = 2_500

export class PriceTrials {
  readonly #parts: PriceTrialParts
  #thread: Worker | undefined

  constructor(parts: PriceTrialParts) {
    this.#parts = parts
  }

  async backtest(ask: Omit<BacktestAsk, 'path' | 'msMax'>): Promise<BacktestResult> {
    const { path } = this.#parts
    const told = await this.#ask({ backtest: { ...ask, path, msMax: bounds.backtestMsMax } })
    return 'backtest' in told ? told.backtest : failed(told)
  }

  async check(): Promise<SourceCheck> {
    const { providerFolders: folders, dateMs } = this.#parts
    const told = await this.#ask({ check: { folders, nowMs: dateMs() } })
    return 'check' in told ? told.check : failed(told)
  }

  close(): void {
    this.#thread?.terminate()
    this.#thread = undefined
  }

  async #ask(ask: ToPrices): Promise<FromPrices> {
    if (this.#thread !== undefined) throw new Refusal('overloaded', 'prices are being tried', { retryAfterMs: 5_000 })
    const thread = (this.#thread = new Worker(new URL('./trial-thread.ts', import.meta.url).href))
    const { promise, resolve, reject } = Promise.withResolvers<FromPrices>()
    thread.onmessage = (event: MessageEvent<FromPrices>) => resolve(event.data)
    thread.onerror = event => reject(new Error(event.message))
    const late = (): void => reject(new Refusal('storage_away', 'prices took too long', { retryAfterMs: 5_000 }))
    const timer = setTimeout(late, bounds.backtestMsMax + STARTED_MS)
    thread.postMessage(ask)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.close()
    }
  }
}

function failed(told: FromPrices): never {
  throw new Error('failed' in told ? told.failed : 'another answer than was asked for')
}
