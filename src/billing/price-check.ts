// Compares what we charge with what other price lists say, rate by rate. Reading the lists is the caller's.

import type { Fee } from '../base/money/price.ts'
import { neighbours } from '../base/money/price.ts'
import type { Bucket } from '../base/money/usage.ts'

export type RateName = Bucket | Fee

/** In billionths of USD, for a million tokens or for one request or search. */
export type ListedRates = Readonly<Partial<Record<RateName, bigint>>>

export interface Listing {
  /** Whose list it is. */
  readonly source: string
  readonly rates: ListedRates
}

/** One model in one situation. */
export interface CheckedModel {
  readonly model: string
  /** So much input, or such a time of the day; empty for the plain price. */
  readonly when: string
  readonly ours: ListedRates
  readonly theirs: readonly Listing[]
  /** Why ours may differ: where it was found, if it is not what the lists have. */
  readonly reason?: string
}

export interface Disagreement {
  readonly model: string
  readonly when: string
  readonly rate: RateName
  readonly ours: bigint | undefined
  readonly theirs: readonly { readonly source: string; readonly rate: bigint }[]
  /** Some list has it dearer than we do: calls may cost us more than they bring in. */
  readonly isCheaper: boolean
  readonly reason?: string
}

export interface CheckResult {
  readonly disagreements: readonly Disagreement[]
  /** Models that no list has. */
  readonly unlisted: readonly string[]
}

/**
 * A rate agrees when it is that of one list: an aggregator's may be its own or the maker's. A list that does not name
 * a kind of token has the rate of its neighbour, as a price of ours has. What only we name is not doubted.
 */
export function checkPrices(models: readonly CheckedModel[]): CheckResult {
  const listed = new Set(models.filter(({ theirs }) => theirs.length > 0).map(({ model }) => model))
  return {
    disagreements: models.flatMap(disagreementsOf),
    unlisted: [...new Set(models.map(({ model }) => model))].filter(model => !listed.has(model)),
  }
}

function disagreementsOf({ model, when, ours, theirs, reason }: CheckedModel): readonly Disagreement[] {
  const named = new Set(theirs.flatMap(({ rates }) => Object.keys(rates) as RateName[]))
  return [...named].flatMap(rate => {
    const stated = theirs.flatMap(({ source, rates }) => {
      const value = rateIn(rates, rate)
      return value === undefined ? [] : [{ source, rate: value }]
    })
    const mine = ours[rate]
    if (stated.some(their => their.rate === mine)) return []
    const isCheaper = stated.some(their => their.rate > (mine ?? 0n))
    return [{ model, when, rate, ours: mine, theirs: stated, isCheaper, ...(reason !== undefined && { reason }) }]
  })
}

function rateIn(rates: ListedRates, name: RateName): bigint | undefined {
  const others: readonly Bucket[] = name in neighbours ? neighbours[name as Bucket] : []
  const named = [name, ...others].find(one => rates[one] !== undefined)
  return named && rates[named]
}

/**
 * A rate as such lists hold it, which is a binary fraction: 0.18000000000000002 means 0.18, and a third is rounded up.
 */
export const listedRate = (usd: number): bigint => BigInt(Math.ceil(usd * 1e9 - 1e-3))

/** What the rates are called in the price data that the provider files are made from, and for how many it is stated. */
export const dataRates: Readonly<Record<string, readonly [rate: RateName, per: number]>> = {
  input_mtok: ['input', 1],
  output_mtok: ['output', 1],
  cache_read_mtok: ['cacheRead', 1],
  cache_write_mtok: ['cacheWrite', 1],
  cache_write_1h_mtok: ['cacheWrite1h', 1],
  input_audio_mtok: ['inputAudio', 1],
  cache_audio_read_mtok: ['cacheReadAudio', 1],
  input_image_mtok: ['inputImage', 1],
  cache_image_read_mtok: ['cacheReadImage', 1],
  output_reasoning_mtok: ['reasoning', 1],
  output_audio_mtok: ['outputAudio', 1],
  output_image_mtok: ['outputImage', 1],
  requests_kcount: ['perRequest', 1000],
  web_searches_kcount: ['perSearch', 1000],
  storage_searches_kcount: ['perFileSearch', 1000],
  input_audio_hours: ['perSecond', 3600],
}
