// What a model of the price data costs at most, said in the one price per kind of token that a provider file has.

import type { ConditionalPrice, ModelInfo, ModelPrice } from '@pydantic/genai-prices'
import { formatUsd, parseUsd } from '../../src/base/money.ts'

/** USD for a million tokens. 0 stands for a price that is not known. */
export interface Rates {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
}

export interface FilePrice {
  readonly input: string
  readonly output: string
  readonly cacheRead?: string
}

// The day of the price data. A fixed day and never the clock, so that a run tomorrow writes the same files.
const PRICES_AS_OF = '2026-11-15'

/** A fee for each request or citation, which a price per token cannot say: such a price counts as not known. */
const BEYOND_TOKENS = ['requests_kcount', 'output_citation_mtok']

const OTHER_OUTPUT = /^output_(audio|image|video)_|audio_hours$/

/** The dearest of all tiers, hours and coming changes, so that no call is undercharged. Undefined: not a text model. */
export function dearestRates(model: ModelInfo): Rates | undefined {
  let dearest: Rates | undefined
  for (const price of pricesInForce(model)) {
    const rates = ratesOf(price)
    if (rates === undefined) return undefined
    dearest = dearest === undefined ? rates : dearer(dearest, rates)
  }
  return dearest
}

export function dearer(one: Rates, other: Rates): Rates {
  return {
    input: Math.max(one.input, other.input),
    output: Math.max(one.output, other.output),
    cacheRead: Math.max(one.cacheRead, other.cacheRead),
  }
}

export function filePrice(rates: Rates): FilePrice | undefined {
  if (rates.input === 0 || rates.output === 0) return undefined
  const price = { input: decimal(rates.input), output: decimal(rates.output) }
  // The input price is what a provider file without "cacheRead" means.
  return rates.cacheRead === rates.input ? price : { ...price, cacheRead: decimal(rates.cacheRead) }
}

/** A start date replaces what stands before it; until it comes, and for hours of the day, either price may hold. */
function pricesInForce(model: ModelInfo): readonly ModelPrice[] {
  if (!Array.isArray(model.prices)) return [model.prices]
  let inForce: ModelPrice[] = []
  for (const conditional of model.prices) {
    if (replacesEarlier(conditional)) inForce = []
    inForce.push(conditional.prices)
  }
  return inForce
}

function replacesEarlier({ constraint }: ConditionalPrice): boolean {
  if (constraint === undefined) return true
  return constraint.type === 'start_date' && constraint.start_date <= PRICES_AS_OF
}

function ratesOf(price: ModelPrice): Rates | undefined {
  if (Object.keys(price).some(key => OTHER_OUTPUT.test(key))) return undefined
  const input = highest(price.input_mtok)
  const output = highest(price.output_mtok)
  if (input === undefined || output === undefined) return undefined
  if (BEYOND_TOKENS.some(key => price[key] !== undefined)) return { input: 0, output: 0, cacheRead: 0 }
  return { input, output, cacheRead: highest(price.cache_read_mtok) || input }
}

function highest(price: ModelPrice[string]): number | undefined {
  if (price === undefined || typeof price === 'number') return price
  return Math.max(price.base, ...price.tiers.map(tier => tier.price))
}

/** The price data holds binary fractions such as 0.18000000000000002; nine decimals give back what was meant. */
function decimal(usd: number): string {
  const exact = parseUsd(usd.toFixed(9))
  if (exact === undefined || Math.abs(Number(exact) / 1e9 - usd) > 1e-12) throw new Error(`not a price: ${usd}`)
  return formatUsd(exact)
}
