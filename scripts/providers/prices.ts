// What a model of the price data costs, with all its tiers, hours and coming changes, said as a provider file says it.
//
// A price is read as a function of a call's moment and length (a tariff), and written by walking the cells between
// the points where it changes. So two of them can be joined whatever their tiers are: the dearer at every point.

import type { ConditionalPrice, ModelInfo, ModelPrice } from '@pydantic/genai-prices'
import { formatUsd, parseUsd } from '../../src/base/money.ts'
import type { Bucket } from '../../src/base/usage.ts'

export type RateName = Bucket | 'perRequest' | 'perSearch'
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

/** The price data's names; what a thousand cost is divided. */
const names: Readonly<Record<string, readonly [rate: RateName, per: number]>> = {
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
}

/** Searches in stored files are a tool of another endpoint; the rest of these prices holds without them. */
const ELSEWHERE = 'storage_searches_kcount'

/** Whose rate a bucket without one of its own has. */
const neighbours: Readonly<Partial<Record<RateName, RateName>>> = {
  cacheRead: 'input',
  cacheWrite: 'input',
  cacheWrite1h: 'cacheWrite',
  inputAudio: 'input',
  cacheReadAudio: 'inputAudio',
  inputImage: 'input',
  cacheReadImage: 'inputImage',
  toolUse: 'input',
  reasoning: 'output',
  outputAudio: 'output',
  outputImage: 'output',
}

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

const hasUnmetered = (price: ModelPrice): boolean =>
  Object.keys(price).some(key => names[key] === undefined && key !== ELSEWHERE)

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
    const [name, per] = names[key] ?? []
    if (name !== undefined && rate > 0) rates[name] = rate / per!
  }
  return rates
}

/** At every point the dearer of two, so that no call is undercharged. */
export function dearer(one: Tariff, other: Tariff): Tariff {
  return {
    tokens: [...one.tokens, ...other.tokens],
    minutes: [...one.minutes, ...other.minutes],
    days: [...one.days, ...other.days],
    at(point) {
      const [left, right] = [one.at(point), other.at(point)]
      const both: Rates = {}
      for (const name of Object.keys({ ...left, ...right }) as RateName[]) {
        both[name] = Math.max(filled(left, name) ?? 0, filled(right, name) ?? 0)
      }
      return both
    },
  }
}

function filled(rates: Rates, name: RateName): number | undefined {
  const neighbour = neighbours[name]
  return rates[name] ?? (neighbour && filled(rates, neighbour))
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
    const differing = stated.filter(name => (filled(wanted, name) ?? filled(before, name)) !== filled(before, name))
    const rates = Object.fromEntries(differing.map(name => [name, filled(wanted, name)]))
    if (differing.length > 0) cases.push([condition, rates])
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
  return [...new Set(Object.values(names).map(([name]) => name))].filter(name => found.includes(name))
}

function texts(rates: Rates, order: readonly RateName[]): FileRates {
  return Object.fromEntries(order.flatMap(name => (rates[name] === undefined ? [] : [[name, decimal(rates[name]!)]])))
}

/** The price data holds binary fractions such as 0.18000000000000002; nine decimals give back what was meant. */
function decimal(usd: number): string {
  const exact = parseUsd(usd.toFixed(9))
  if (exact === undefined || Math.abs(Number(exact) / 1e9 - usd) > 1e-12) throw new Error(`not a price: ${usd}`)
  return formatUsd(exact)
}
