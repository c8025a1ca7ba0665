// The thread that runs backtests and price checks. It starts for one request and ends with it.

import type { BacktestRequest, BacktestResult } from '../../billing/backtest-run.ts'
import { runBacktest } from '../../billing/backtest-run.ts'
import type { SourceCheck } from './public-sources.ts'
import { checkSources, loadPriceData, readProviders } from './public-sources.ts'

export type PriceTrialRequest =
  | { readonly backtest: BacktestRequest }
  | { readonly check: { readonly folders: readonly string[]; readonly nowMs: number } }
export type PriceTrialReply =
  | { readonly backtest: BacktestResult }
  | { readonly check: SourceCheck }
  | { readonly failed: string }

declare const self: Worker

async function handle(request: PriceTrialRequest): Promise<PriceTrialReply> {
  if ('backtest' in request) return { backtest: runBacktest(request.backtest, () => performance.now()) }
  const { folders, nowMs } = request.check
  return { check: checkSources({ providers: readProviders(folders), data: await loadPriceData(), nowMs }) }
}

self.onmessage = async (event: MessageEvent<PriceTrialRequest>) => {
  try {
    postMessage(await handle(event.data))
  } catch (fault) {
    postMessage({ failed: fault instanceof Error ? fault.message : 'unknown fault' } satisfies PriceTrialReply)
  }
}
