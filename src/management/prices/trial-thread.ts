// The thread that runs backtests and price checks. It starts for one request and ends with it.

import { serveThread } from '../../base/threads/serve-thread.ts'
import type { BacktestRequest, BacktestResult } from '../../billing/backtest-run.ts'
import { runBacktest } from '../../billing/backtest-run.ts'
import type { SourceCheck } from './public-sources.ts'
import { checkSources, loadPriceData, readProviders } from './public-sources.ts'

export interface PriceTrialMethods {
  backtest(request: BacktestRequest): BacktestResult
  check(request: { readonly folders: readonly string[]; readonly nowMs: number }): SourceCheck
}

serveThread<PriceTrialMethods>(() => ({
  backtest: request => runBacktest(request, () => performance.now()),
  check: async ({ folders, nowMs }) =>
    checkSources({ providers: readProviders(folders), data: await loadPriceData(), nowMs }),
}))
