// The thread in which prices are tried: long work, begun for one question and ended with it.

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

async function answer(ask: ToPrices): Promise<FromPrices> {
  if ('backtest' in ask) return { backtest: runBacktest(ask.backtest, () => performance.now()) }
  const { folders, nowMs } = ask.check
  return { check: checkSources({ providers: readProviders(folders), data: await loadPriceData(), nowMs }) }
}

self.onmessage = async (event: MessageEvent<ToPrices>) => {
  try {
    postMessage(await answer(event.data))
  } catch (fault) {
    postMessage({ failed: fault instanceof Error ? fault.message : 'unknown fault' } satisfies FromPrices)
  }
}
