// Compares our prices with other price lists, rate by rate. The caller reads the lists.

import type { Fee } from '../base/money/price.ts'
import { fallbackBuckets } from '../base/money/price.ts'
import type { Bucket } from '../base/money/usage.ts'

export type RateName = Bucket | Fee

/** In nanodollars, for a million tokens or for one request or search. */
export type ListedRates = Readonly<Partial<Record<RateName, bigint>>>

export interface PriceListing {
  /** The name of the list. */
  readonly source: string
  readonly rates: ListedRates
}

/** One model under one condition. */
export interface CheckedModel {
  readonly model: string
  /** The condition: a length of the input or a time of day; empty for the base price. */
  readonly when: string
  readonly ours: ListedRates
  readonly theirs: readonly PriceListing[]
  /** Why our price may differ from the lists, for instance its source. */
  readonly reason?: string
}

export interface PriceDisagreement {
  readonly model: string
  readonly when: string
  readonly rate: RateName
  readonly ours: bigint | undefined
  readonly theirs: readonly { readonly source: string; readonly rate: bigint }[]
  /** Whether a list has a higher rate than we do, so that calls may cost us more than we charge. */
  readonly isCheaper: boolean
  readonly reason?: string
}

export interface PriceCheckResult {
  readonly disagreements: readonly PriceDisagreement[]
  /** Models that are in no list. */
  readonly unlisted: readonly string[]
}

/**
 * A rate agrees when at least one list has the same: an aggregator may have its own rate or the one of the model's maker.
 * For a kind of token that a list does not name, the neighbouring kind counts, as in our own prices. Rates that only we
 * name are not checked.
 */
export function checkPrices(models: readonly CheckedModel[]): PriceCheckResult {
  const listed = new Set(models.filter(({ theirs }) => theirs.length > 0).map(({ model }) => model))
  return {
    disagreements: models.flatMap(disagreementsOf),
    unlisted: [...new Set(models.map(({ model }) => model))].filter(model => !listed.has(model)),
  }
}

function disagreementsOf({ model, when, ours, theirs, reason }: CheckedModel): readonly PriceDisagreement[] {
  const named = new Set(theirs.flatMap(({ rates }) => Object.keys(rates) as RateName[]))
  return [...named].flatMap(rate => {
    const listed = theirs.flatMap(({ source, rates }) => {
      const value = rateIn(rates, rate)
      return value === undefined ? [] : [{ source, rate: value }]
    })
    const ourRate = ours[rate]
    if (listed.some(their => their.rate === ourRate)) return []
    const isCheaper = listed.some(their => their.rate > (ourRate ?? 0n))
    return [{ model, when, rate, ours: ourRate, theirs: listed, isCheaper, ...(reason !== undefined && { reason }) }]
  })
}

function rateIn(rates: ListedRates, name: RateName): bigint | undefined {
  const others: readonly Bucket[] = name in fallbackBuckets ? fallbackBuckets[name as Bucket] : []
  const named = [name, ...others].find(one => rates[one] !== undefined)
  return named && rates[named]
}

/** Converts a rate of a list, which is a binary fraction: 0.18000000000000002 means 0.18, and a third is rounded up. */
export const listedRate = (usd: number): bigint => BigInt(Math.ceil(usd * 1e9 - 1e-3))

/** The names of rates in the price data that the provider files are generated from, and how many units each is for. */
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
