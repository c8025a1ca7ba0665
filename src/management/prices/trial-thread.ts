// The thread that runs backtests and price checks. It starts for one request and ends with it.

import type { BacktestAsk, BacktestResult } from '../../billing/backtest-run.ts'
import { runBacktest } from '../../billing/backtest-run.ts'
import type { SourceCheck } from './public-sources.ts'
import { checkSources, loadPriceData, readProviders } from './public-sources.ts'

export type ToPrices =
  | { readonly backtest: BacktestAsk }
  | { readonly check: { readonly folders: readonly string[]; readonly nowMs: number } }
export type FromPrices =
  | { readonly backtest: BacktestResult }
  | { readonly check: SourceCheck }
  | { readonly failed: string }

declare const self: Worker

async function handle(request: ToPrices): Promise<FromPrices> {
  if ('backtest' in request) return { backtest: runBacktest(request.backtest, () => performance.now()) }
  const { folders, nowMs } = request.check
  return { check: checkSources({ providers: readProviders(folders), data: await loadPriceData(), nowMs }) }
}

self.onmessage = async (event: MessageEvent<ToPrices>) => {
  try {
    postMessage(await handle(event.data))
  } catch (fault) {
    postMessage({ failed: fault instanceof Error ? fault.message : 'unknown fault' } satisfies FromPrices)
  }
}
