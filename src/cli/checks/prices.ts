// weir prices check: holds the prices of the provider files against the public price data they were made from, at
// today's date. The data is a development dependency; an installation without it is told so, and nothing is compared.

import type { Nanos } from '../../base/money/money.ts'
import { formatUsd } from '../../base/money/money.ts'
import type { Disagreement } from '../../billing/price-check.ts'
import type { SourceCheckParts } from '../../management/prices/public-sources.ts'
import { checkSources, DATA, loadPriceData, readProviders } from '../../management/prices/public-sources.ts'
import { jsonText } from '../print.ts'
import type { Wanted } from './problem.ts'

interface Asked extends Wanted {
  readonly folders: readonly string[]
}

export async function checkInstalledPrices({ folders, json }: Asked, say: (line: string) => void): Promise<0 | 1> {
  const parts = { providers: readProviders(folders), data: await loadPriceData(), nowMs: Date.now() }
  return json ? pricesAsJson(parts, say) : pricesCheck(parts, say)
}

function pricesAsJson(parts: SourceCheckParts, say: (line: string) => void): 0 | 1 {
  const { disagreements, ...seen } = checkSources(parts)
  const shown = disagreements.map(({ ours, theirs, when, ...one }) => ({
    ...one,
    when: when === '' ? null : when,
    ours: ours === undefined ? null : usdText(ours),
    theirs: theirs.map(({ rate, source }) => ({ rate: usdText(rate), source })),
  }))
  say(jsonText({ ...seen, disagreements: shown }))
  return isUnexplained(disagreements) ? 1 : 0
}

const isUnexplained = (all: readonly Disagreement[]): boolean => all.some(({ reason }) => reason === undefined)

/** Prints one line for each rate that differs, and gives the exit code: 1 if any differs without a reason. */
export function pricesCheck(parts: SourceCheckParts, say: (line: string) => void): 0 | 1 {
  const { compared, prices, disagreements, unlisted, without } = checkSources(parts)
  if (!compared) {
    say(`${DATA} is not installed (it is a development dependency), so no price was compared.`)
    sayList(say, 'without a price, so not served', without)
    return 0
  }
  const unexplained = disagreements.filter(({ reason }) => reason === undefined)
  for (const one of disagreements) say(lineOf(one))
  sayList(say, `not in ${DATA}`, unlisted)
  sayList(say, 'without a price, so not served', without)
  say(`${prices} prices, ${disagreements.length} rates differ, ${unexplained.length} of them without a reason`)
  return unexplained.length > 0 ? 1 : 0
}

function lineOf({ model, when, rate, ours, theirs, isCheaper, reason }: Disagreement): string {
  const shown = theirs.map(their => `${usdText(their.rate)} (${their.source})`).join(', ')
  const why = reason === undefined ? '' : `  reason: ${reason}`
  const place = when === '' ? rate : `${rate}, ${when}`
  return `${model}  ${place}  ours ${usdText(ours ?? 0n)}  theirs ${shown}${isCheaper ? '  CHEAPER' : ''}${why}`
}

const usdText = (amount: bigint): string => formatUsd(amount as Nanos)

function sayList(say: (line: string) => void, what: string, models: readonly string[]): void {
  if (models.length > 0) say(`${what}: ${models.join(', ')}`)
}
