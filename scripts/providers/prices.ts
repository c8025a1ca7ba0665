// What a model of the price data costs, with all its tiers, hours and coming changes, said as a provider file says it.
//
// A price is read as a function of a call's moment and length (a tariff), and written by walking the cells between
// the points where it changes. So two of them can be joined whatever their tiers are: the dearer at every point.

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
  /** Where a price that is written by hand was found, and when. */
  readonly source?: string
  /** Tools that cost nothing beyond the rest. */
  readonly included?: readonly string[]
}

/** USD for a million tokens, or for one request or search. */
type Rates = Partial<Record<RateName, number>>

interface Point {
  readonly tokens: number
  readonly minute: number
  readonly day: string
}

export interface Tariff {
  /** Where it changes: above a number of input tokens, at a minute of the day, on a day to come. */
  readonly tokens: readonly number[]
  readonly minutes: readonly number[]
  readonly days: readonly string[]
  at(point: Point): Rates
}

// The day of the price data. A fixed day and never the clock, so that a run tomorrow writes the same files.
export const PRICES_AS_OF = '2026-11-15'

/** Undefined: not a model that reads and writes text. 'unknown': it costs what we cannot meter, or nothing is said. */
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

/** A start date that has come replaces what stands before it. */
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

/** The price data has 0 for what is free to try, or not known; neither is a price. */
const isFree = (price: ModelPrice): boolean => [price.input_mtok, price.output_mtok].some(of => rateAt(of, 0) === 0)

const tiersOf = (price: ModelPrice[string]) => (typeof price === 'object' ? price.tiers : [])

/** A tier holds for the whole call, and begins above its start. */
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
 * At every point the dearer of a model's own price and of another that it passes on, so that no call is undercharged.
 * Where the input costs the same it is passed on in full, also what the own price does not name.
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

/** Some lists have only what storing adds to the input's rate. A token that is written to the cache is read as well. */
export function withFullWrites(tariff: Tariff): Tariff {
  return {
    ...tariff,
    at(point) {
      const { cacheWrite, ...rates } = tariff.at(point)
      return cacheWrite === undefined ? rates : { ...rates, cacheWrite: Math.max(cacheWrite, rates.input!) }
    },
  }
}

/** Where a price is only known for what is cached for minutes. */
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

/** A rate, or that of the neighbour whose rate it then has. */
function filled(rates: Rates, name: RateName): number | undefined {
  const others: readonly RateName[] = name in fallbackBuckets ? fallbackBuckets[name as Bucket] : []
  return rates[[name, ...others].find(one => rates[one] !== undefined) ?? name]
}

type Condition = Pick<FileCase, 'from' | 'hours' | 'inputAbove'>
type Cell = readonly [condition: Condition, point: Point]

/** Every rate that is named anywhere is stated wherever it changes; a later case wins, so the broad ones come first. */
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
    // In order, so that a neighbour comes first: what it states here changes what the unnamed have.
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
  // The stretch over midnight is what the others differ from, so it has no hours of its own.
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
