// The price of a model in the price data, with all tiers, hours and future changes, in the format of provider files.
//
// A price is read as a function of the time and the length of a call (a tariff). It is written by visiting the cells
// between the points where it changes. So two tariffs with different tiers can be joined: the higher price at every
// point.

import type { ConditionalPrice, ModelInfo, ModelPrice } from '@pydantic/genai-prices'
import { formatUsd, nanos } from '../../src/base/money/money.ts'
import { fallbackBuckets } from '../../src/base/money/price.ts'
import type { Bucket } from '../../src/base/money/usage.ts'
import type { RateName } from '../../src/billing/price-check.ts'
import { dataRates, listedRate } from '../../src/billing/price-check.ts'

export type FileRates = Readonly<Partial<Record<RateName, string>>>

export interface FileCase extends FileRates {
  readonly class?: string
  readonly inputAbove?: number
  readonly hours?: readonly [from: string, to: string]
  readonly from?: string
}

export interface FilePrice extends FileRates {
  readonly input: string
  readonly output: string
  readonly currency?: { readonly code: string; readonly unitsPerUsd: string }
  readonly cases?: readonly FileCase[]
  /** The source of a price that is written by hand, and the day it was read. */
  readonly source?: string
  /** Tools without a fee of their own. */
  readonly included?: readonly string[]
}

/** US dollars per million tokens, or per request or search. */
type Rates = Partial<Record<RateName, number>>

interface Point {
  readonly tokens: number
  readonly minute: number
  readonly day: string
}

export interface Tariff {
  /** The points where the price changes: numbers of input tokens, minutes of the day, future days. */
  readonly tokens: readonly number[]
  readonly minutes: readonly number[]
  readonly days: readonly string[]
  at(point: Point): Rates
}

// The day of the price data. It is fixed, so that a later run writes the same files.
export const PRICES_AS_OF = '2026-11-15'

/** Undefined for a model that does not read and write text. 'unknown' if its cost cannot be metered or is not stated. */
export function tariffOf(model: ModelInfo): Tariff | 'unknown' | undefined {
  const inForce = pricesInForce(model)
  const prices = inForce.map(({ prices }) => prices)
  if (prices.some(price => price.input_mtok === undefined || price.output_mtok === undefined)) return undefined
  if (prices.some(hasUnmetered) || prices.some(isFree)) return 'unknown'
  const tiers = prices.flatMap(price => Object.values(price)).flatMap(tiersOf)
  const constraints = inForce.flatMap(({ constraint }) => constraint ?? [])
  const ofDay = constraints.filter(constraint => constraint.type === 'time_of_date')
  const ofDate = constraints.filter(constraint => constraint.type === 'start_date')
  return {
    tokens: tiers.map(({ start }) => start),
    minutes: ofDay.flatMap(({ start_time, end_time }) => [minuteOf(start_time), minuteOf(end_time)]),
    days: ofDate.map(({ start_date }) => start_date).filter(day => day > PRICES_AS_OF),
    at(point: Point) {
      return ratesAt(inForce.findLast(conditional => applies(conditional, point))!.prices, point.tokens)
    },
  }
}

/** An entry whose start date has passed replaces the entries before it. */
function pricesInForce(model: ModelInfo): readonly ConditionalPrice[] {
  if (!Array.isArray(model.prices)) return [{ prices: model.prices }]
  const replacing = model.prices.findLastIndex(
    ({ constraint }) =>
      constraint === undefined || (constraint.type === 'start_date' && constraint.start_date <= PRICES_AS_OF),
  )
  return model.prices.slice(Math.max(replacing, 0))
}

function applies({ constraint }: ConditionalPrice, { minute, day }: Point): boolean {
  if (constraint === undefined) return true
  if (constraint.type === 'start_date') return constraint.start_date <= day
  return isWithin(minute, [minuteOf(constraint.start_time), minuteOf(constraint.end_time)])
}

function isWithin(minute: number, [from, to]: readonly [number, number]): boolean {
  return from < to ? from <= minute && minute < to : minute >= from || minute < to
}

const hasUnmetered = (price: ModelPrice): boolean => Object.keys(price).some(key => dataRates[key] === undefined)

/** In the price data, 0 means a free trial or an unknown price. Neither is a price. */
const isFree = (price: ModelPrice): boolean => [price.input_mtok, price.output_mtok].some(of => rateAt(of, 0) === 0)

const tiersOf = (price: ModelPrice[string]) => (typeof price === 'object' ? price.tiers : [])

/** A tier applies to the whole call, if the call has more tokens than its start. */
function rateAt(price: ModelPrice[string], tokens: number): number {
  if (price === undefined || typeof price === 'number') return price ?? 0
  const reached = price.tiers.filter(({ start }) => tokens > start).sort((one, other) => one.start - other.start)
  return reached.at(-1)?.price ?? price.base
}

function ratesAt(price: ModelPrice, tokens: number): Rates {
  const rates: Rates = {}
  for (const [key, value] of Object.entries(price)) {
    const rate = rateAt(value, tokens)
    const [name, per] = dataRates[key] ?? []
    if (name !== undefined && rate > 0) rates[name] = rate / per!
  }
  return rates
}

/**
 * At every point the higher of a model's own price and the price of its maker, so that no call is undercharged. Where the
 * input costs the same, the maker's price is used in full, also for units that the model's own price does not name.
 */
export function dearer(own: Tariff, other: Tariff): Tariff {
  return {
    tokens: [...own.tokens, ...other.tokens],
    minutes: [...own.minutes, ...other.minutes],
    days: [...own.days, ...other.days],
    at(point) {
      const [mine, theirs] = [own.at(point), other.at(point)]
      const isPassedOn = mine.input === theirs.input
      const both: Rates = {}
      for (const name of Object.keys({ ...mine, ...theirs }) as RateName[]) {
        const unnamed = isPassedOn ? undefined : filled(mine, name)
        both[name] = Math.max(mine[name] ?? unnamed ?? 0, theirs[name] ?? 0)
      }
      return both
    },
  }
}

/** Some lists have only the surcharge for writing to the cache. A token that is written is also read as input. */
export function withFullWrites(tariff: Tariff): Tariff {
  return {
    ...tariff,
    at(point) {
      const { cacheWrite, ...rates } = tariff.at(point)
      return cacheWrite === undefined ? rates : { ...rates, cacheWrite: Math.max(cacheWrite, rates.input!) }
    },
  }
}

/** For models whose only known cache price is that of a cache of some minutes. */
export function withHourWrites(tariff: Tariff): Tariff {
  return {
    ...tariff,
    at(point) {
      const rates = tariff.at(point)
      const isUnsaid = rates.cacheWrite !== undefined && rates.cacheWrite1h === undefined
      return isUnsaid ? { ...rates, cacheWrite1h: rates.input! * 2 } : rates
    },
  }
}

/** A rate; if it is not named, the rate of the unit that it falls back to. */
function filled(rates: Rates, name: RateName): number | undefined {
  const others: readonly RateName[] = name in fallbackBuckets ? fallbackBuckets[name as Bucket] : []
  return rates[[name, ...others].find(one => rates[one] !== undefined) ?? name]
}

type Condition = Pick<FileCase, 'from' | 'hours' | 'inputAbove'>
type Cell = readonly [condition: Condition, point: Point]

/** Each case states every rate that differs. A later case wins, so the general cases come first. */
export function filePrice(tariff: Tariff): FilePrice {
  const [[, first], ...cells] = cellsOf(tariff) as [Cell, ...Cell[]]
  const base = tariff.at(first)
  const stated = orderedNames([base, ...cells.map(([, point]) => tariff.at(point))].flatMap(Object.keys))
  const cases: (readonly [Condition, Rates])[] = []
  for (const [condition, point] of cells) {
    const earlier = cases.filter(([when]) => isIn(when, point)).map(([, rates]) => rates)
    const before = Object.assign({}, base, ...earlier) as Rates
    const wanted = tariff.at(point)
    const rates: Rates = {}
    // In this order, because a rate that is stated here changes the rates that fall back to it.
    for (const name of stated) {
      const rate = filled(wanted, name)
      if (rate !== undefined && rate !== filled({ ...before, ...rates }, name)) rates[name] = rate
    }
    if (Object.keys(rates).length > 0) cases.push([condition, rates])
  }
  return {
    ...(texts(base, stated) as FileRates & { input: string; output: string }),
    ...(cases.length > 0 && { cases: cases.map(([when, rates]) => ({ ...when, ...texts(rates, stated) })) }),
  }
}

function cellsOf(tariff: Tariff): readonly Cell[] {
  const tokens = [undefined, ...ascending(tariff.tokens)]
  const minutes = ascending(tariff.minutes)
  // The period over midnight is the default, so it has no hours.
  const stretches = minutes.map((from, index) => [from, minutes[index + 1] ?? minutes[0]!] as const).slice(0, -1)
  const days = [undefined, ...[...new Set(tariff.days)].sort()]
  return days.flatMap(from =>
    [undefined, ...stretches].flatMap(hours =>
      tokens.map((inputAbove): Cell => {
        const when = { ...(from && { from }), ...(hours && { hours: [clock(hours[0]), clock(hours[1])] as const }) }
        const minute = hours?.[0] ?? minutes.at(-1) ?? 0
        const point = { tokens: inputAbove === undefined ? 0 : inputAbove + 1, minute, day: from ?? PRICES_AS_OF }
        return [{ ...when, ...(inputAbove !== undefined && { inputAbove }) }, point]
      }),
    ),
  )
}

function isIn({ from, hours, inputAbove }: Condition, { tokens, minute, day }: Point): boolean {
  return (
    (from === undefined || from <= day) &&
    (hours === undefined || isWithin(minute, [minuteOf(hours[0]), minuteOf(hours[1])])) &&
    (inputAbove === undefined || tokens > inputAbove)
  )
}

const ascending = (numbers: readonly number[]): readonly number[] => [...new Set(numbers)].sort((a, b) => a - b)

const minuteOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5))

const clock = (minute: number): string =>
  [Math.floor(minute / 60), minute % 60].map(part => String(part).padStart(2, '0')).join(':')

function orderedNames(found: readonly string[]): readonly RateName[] {
  return [...new Set(Object.values(dataRates).map(([name]) => name))].filter(name => found.includes(name))
}

function texts(rates: Rates, order: readonly RateName[]): FileRates {
  const named = order.filter(name => rates[name] !== undefined)
  return Object.fromEntries(named.map(name => [name, formatUsd(nanos(listedRate(rates[name]!)))]))
}
