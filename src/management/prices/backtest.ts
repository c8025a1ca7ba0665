// Translates a backtest request into its query, and the result into the fields of the interface.

import { bounds } from '../../base/bounds.ts'
import { idAtMs, msOfId } from '../../base/ids.ts'
import { formatUsd, nanos, usdText } from '../../base/money/money.ts'
import type { Price } from '../../base/money/price.ts'
import { priceText } from '../../base/money/price.ts'
import { DAY_MS, timeText } from '../../base/time.ts'
import { backtestSkipReasons } from '../../billing/backtest.ts'
import type { BacktestRequest, BacktestResult, BacktestSums } from '../../billing/backtest-run.ts'

export interface BacktestRange {
  readonly fromMs: number
  readonly beforeMs: number
}

/** True if the range is not empty and not too long. */
export const isValidRange = ({ fromMs, beforeMs }: BacktestRange): boolean =>
  fromMs < beforeMs && beforeMs - fromMs <= bounds.backtestDaysMax * DAY_MS

export type BacktestProposal = { readonly price: Price } | { readonly tier: string; readonly perMille: number }

export interface BacktestInput extends BacktestRange {
  readonly proposal: BacktestProposal
  /** The model name as callers write it. */
  readonly model?: string | undefined
  readonly accountId?: number | undefined
  readonly keyId?: number | undefined
}

export function buildBacktestQuery(wanted: BacktestInput): Omit<BacktestRequest, 'place' | 'msMax'> {
  const { proposal, fromMs, beforeMs, model, accountId, keyId } = wanted
  const slash = model?.indexOf('/') ?? 0
  const modelFilter =
    model === undefined ? {} : { model: { provider: model.slice(0, slash), name: model.slice(slash + 1) } }
  const filter = { from: idAtMs(fromMs), before: idAtMs(beforeMs), accountId, keyId, ...modelFilter }
  if ('price' in proposal) return { filter, proposal: { price: priceText(proposal.price) } }
  return { filter, proposal: { perMille: proposal.perMille }, tier: proposal.tier }
}

function formatSums({ calls, was, wouldBe }: BacktestSums) {
  const difference = formatUsd(nanos(BigInt(wouldBe) - BigInt(was)))
  return { calls, was: usdText(was), wouldBe: usdText(wouldBe), difference }
}

export function formatBacktest(result: BacktestResult, { fromMs, beforeMs }: BacktestRange) {
  const { reached, leftOut } = result
  const reasons = Object.entries(leftOut) as [keyof typeof backtestSkipReasons, number][]
  return {
    ...formatSums(result),
    from: timeText(fromMs),
    before: timeText(beforeMs),
    complete: reached === null,
    coveredFrom: timeText(reached === null ? fromMs : msOfId(reached)),
    byModel: Object.entries(result.byModel).map(([model, sums]) => ({ model, ...formatSums(sums) })),
    byDay: Object.entries(result.byDay).map(([day, sums]) => ({ day, ...formatSums(sums) })),
    leftOut: reasons.map(([reason, calls]) => ({ reason, calls, about: backtestSkipReasons[reason] })),
  }
}
