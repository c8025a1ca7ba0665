// Runs backtests and price checks in a thread of their own, one at a time and for a limited time, so that calls keep the
// other cores.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { Thread } from '../../base/threads/thread.ts'
import type { BacktestRequest, BacktestResult } from '../../billing/backtest-run.ts'
import type { DataPlace } from '../../store/engine/thread-reads.ts'
import type { SourceCheck } from './public-sources.ts'
import type { PriceTrialMethods } from './trial-thread.ts'

export interface PriceTrialParts {
  readonly place: DataPlace
  /** Folders with provider files, besides the shipped ones. */
  readonly providerFolders: readonly string[]
  dateMs(): number
}

/** Additional time for the start of the thread and for its answer. */
const START_MS = 2_500

export class PriceTrials {
  readonly #parts: PriceTrialParts
  readonly #thread = new Thread<PriceTrialMethods>({ url: new URL('./trial-thread.ts', import.meta.url) })

  constructor(parts: PriceTrialParts) {
    this.#parts = parts
  }

  backtest(request: Omit<BacktestRequest, 'place' | 'msMax'>): Promise<BacktestResult> {
    const { place } = this.#parts
    return this.#run('backtest', { ...request, place, msMax: bounds.backtestMsMax })
  }

  check(): Promise<SourceCheck> {
    const { providerFolders: folders, dateMs } = this.#parts
    return this.#run('check', { folders, nowMs: dateMs() })
  }

  close(): void {
    this.#thread.stop()
  }

  async #run<Name extends keyof PriceTrialMethods>(
    name: Name,
    input: Parameters<PriceTrialMethods[Name]>[0],
  ): Promise<ReturnType<PriceTrialMethods[Name]>> {
    if (this.#thread.isRunning)
      throw new Refusal('overloaded', 'another backtest or price check is running', { retryAfterMs: 5_000 })
    const error = (): Refusal =>
      new Refusal('storage_away', 'the backtest or price check took too long', { retryAfterMs: 5_000 })
    try {
      return await this.#thread.run(name, input, { timeout: { ms: bounds.backtestMsMax + START_MS, error } })
    } finally {
      this.close()
    }
  }
}
