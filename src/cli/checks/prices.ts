// weir prices check: compares the prices of the provider files with the public price data that they come from, at
// today's date. The data is a development dependency; without it the command says so and compares nothing.

import type { Nanos } from '../../base/money/money.ts'
import { formatUsd } from '../../base/money/money.ts'
import type { PriceDisagreement } from '../../billing/price-check.ts'
import type { SourceCheckParts } from '../../management/prices/public-sources.ts'
import {
  checkSources,
  loadPriceData,
  PRICE_DATA_PACKAGE,
  readProviders,
} from '../../management/prices/public-sources.ts'
import { jsonText } from '../print.ts'
import type { OutputOptions } from './findings.ts'

export async function checkInstalledPrices(
  { folders, json }: OutputOptions & { readonly folders: readonly string[] },
  say: (line: string) => void,
): Promise<0 | 1> {
  const parts = { providers: readProviders(folders), data: await loadPriceData(), nowMs: Date.now() }
  return json ? printPricesJson(parts, say) : printPriceCheck(parts, say)
}

function printPricesJson(parts: SourceCheckParts, say: (line: string) => void): 0 | 1 {
  const { disagreements, ...report } = checkSources(parts)
  const rows = disagreements.map(({ ours, theirs, when, ...disagreement }) => ({
    ...disagreement,
    when: when === '' ? null : when,
    ours: ours === undefined ? null : usdText(ours),
    theirs: theirs.map(({ rate, source }) => ({ rate: usdText(rate), source })),
  }))
  say(jsonText({ ...report, disagreements: rows }))
  return hasUnexplained(disagreements) ? 1 : 0
}

const hasUnexplained = (all: readonly PriceDisagreement[]): boolean => all.some(({ reason }) => reason === undefined)

/** Prints one line for each rate that differs. Returns the exit code: 1 if any rate differs without a reason. */
export function printPriceCheck(parts: SourceCheckParts, say: (line: string) => void): 0 | 1 {
  const { compared, prices, disagreements, unlisted, without } = checkSources(parts)
  if (!compared) {
    say(`${PRICE_DATA_PACKAGE} is not installed (it is a development dependency), so no price was compared.`)
    sayList(say, 'no price, so not served', without)
    return 0
  }
  const unexplained = disagreements.filter(({ reason }) => reason === undefined)
  for (const disagreement of disagreements) say(disagreementLine(disagreement))
  sayList(say, `not in ${PRICE_DATA_PACKAGE}`, unlisted)
  sayList(say, 'no price, so not served', without)
  say(`${prices} prices, ${disagreements.length} rates differ, ${unexplained.length} of them without a reason`)
  return unexplained.length > 0 ? 1 : 0
}

function disagreementLine({ model, when, rate, ours, theirs, isCheaper, reason }: PriceDisagreement): string {
  const theirRates = theirs.map(their => `${usdText(their.rate)} (${their.source})`).join(', ')
  const why = reason === undefined ? '' : `  reason: ${reason}`
  const rateName = when === '' ? rate : `${rate}, ${when}`
  return `${model}  ${rateName}  ours ${usdText(ours ?? 0n)}  theirs ${theirRates}${isCheaper ? '  CHEAPER' : ''}${why}`
}

const usdText = (amount: bigint): string => formatUsd(amount as Nanos)

function sayList(say: (line: string) => void, title: string, models: readonly string[]): void {
  if (models.length > 0) say(`${title}: ${models.join(', ')}`)
}
