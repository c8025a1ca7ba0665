// Computes two amounts for a record beside its charge: what the provider charges for the same usage, and what cached
// input saved. Both are computed from the lines of the bill and the versions of prices.
//
// A call at a shipped price costs the operator the sum of its lines before the tier's multiplier. For a call at a price
// of the operator, the same counts are priced with the plain rates that were shipped for the model at that time;
// special cases (long input, hours, classes) are ignored. What a provider bills for calls without usage is unknown.

import type { BillLine, NanosPerMillion } from '../../base/money/money.ts'
import { bill, parseUsd, rateOfEach } from '../../base/money/money.ts'
import type { Rates } from '../../base/money/price.ts'
import { fallbackBuckets, parsePrice, unitFees, unitNames } from '../../base/money/price.ts'
import type { Bucket } from '../../base/money/usage.ts'
import { units } from '../../base/money/usage.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'

export interface BilledRecord {
  readonly provider: string | null
  readonly model: string | null
  readonly price_version: bigint | null
  readonly lines: string | null
  /** The whole bill: what the caller paid, and the shortfall. */
  readonly billed: bigint
  readonly atMs: number
}

export interface RecordMoney {
  readonly providerCost: bigint
  readonly cacheSavings: bigint
}

const noMoney: RecordMoney = { providerCost: 0n, cacheSavings: 0n }

interface NamedLine extends BillLine {
  readonly what: string
}

interface PriceVersionRates {
  readonly version: number
  readonly origin: string
  readonly madeMs: number
  readonly rates: Rates
}

/** A million dollars. A higher amount is certainly wrong, and the sum of many amounts must fit into 64 bits. */
const AMOUNT_MAX = 1_000_000_000_000_000n
const MILLION = 1_000_000n
const RATES_CACHED_MAX = 10_000

const findLastVersion = query<{ version: bigint }>('SELECT coalesce(max(version), 0) AS version FROM price')
const findVersions = query<PriceRow>(
  'SELECT version, origin, price, made_ms FROM price WHERE model = ?1 ORDER BY version DESC',
)

type PricedRecord = Pick<BilledRecord, 'provider' | 'model' | 'lines'>

const modelOf = ({ provider, model }: PricedRecord): string => `${provider}/${model}`

export class RecordMoneyCalculator {
  /** The versions of prices by model, newest first. Cleared when a new version exists. */
  readonly #versions = new Map<string, readonly PriceVersionRates[]>()
  readonly #rates = new Map<string, NanosPerMillion>()
  #version = -1n

  /** `readPrices` must have been called for the record. */
  compute(record: BilledRecord): RecordMoney {
    const lines = record.lines === null ? [] : this.#linesOf(record.lines)
    if (lines.length === 0) return noMoney
    const versions = this.#versions.get(modelOf(record))!
    const pinned = versions.find(({ version }) => version === Number(record.price_version))
    const listed = bill(lines)
    return {
      providerCost: clamp(pinned?.origin === 'operator' ? shippedCost(lines, versions, record.atMs) : listed),
      cacheSavings: clamp(listed === 0n ? 0n : (savingsOf(lines, pinned) * record.billed) / listed),
    }
  }

  /** Reads the prices of records. To be called for each batch. */
  *readPrices(records: readonly PricedRecord[]): Steps<void> {
    const { version } = (yield* findLastVersion.get())!
    if (version !== this.#version) this.#versions.clear()
    this.#version = version
    for (const record of records) {
      const model = modelOf(record)
      if (record.lines === null || this.#versions.has(model)) continue
      this.#versions.set(model, (yield* findVersions.all(model)).flatMap(readVersion))
    }
  }

  #linesOf(text: string): readonly NamedLine[] {
    try {
      const lines = JSON.parse(text) as [string, number, string][]
      return lines.map(([what, count, rate]) => ({ what, count, rate: this.#rateOf(rate) }))
    } catch {
      return []
    }
  }

  #rateOf(text: string): NanosPerMillion {
    let rate = this.#rates.get(text)
    if (rate === undefined) {
      rate = (parseUsd(text) ?? 0n) as NanosPerMillion
      if (this.#rates.size >= RATES_CACHED_MAX) this.#rates.clear()
      this.#rates.set(text, rate)
    }
    return rate
  }
}

interface PriceRow {
  readonly version: bigint
  readonly origin: string
  readonly price: string
  readonly made_ms: bigint
}

/** A list of one, or an empty list for a price that cannot be read. */
function readVersion({ version, origin, price, made_ms: madeMs }: PriceRow): PriceVersionRates[] {
  if (origin === 'withdrawn') return []
  const fail = (problem: string): never => {
    throw new Error(problem)
  }
  try {
    const { rates } = parsePrice(JSON.parse(price), fail)
    return [{ version: Number(version), origin, madeMs: Number(madeMs), rates }]
  } catch {
    return []
  }
}

const clamp = (amount: bigint): bigint =>
  amount > AMOUNT_MAX ? AMOUNT_MAX : amount < -AMOUNT_MAX ? -AMOUNT_MAX : amount

/** The cost at the price that was shipped at that time; without one, the cost at the charged rates. */
function shippedCost(lines: readonly NamedLine[], versions: readonly PriceVersionRates[], atMs: number): bigint {
  const shipped = versions.filter(({ origin }) => origin === 'shipped')
  const price = shipped.find(({ madeMs }) => madeMs <= atMs) ?? shipped.at(-1)
  if (price === undefined) return bill(lines)
  return bill(lines.map(({ what, count }) => ({ count, rate: rateFor(what, price.rates) })))
}

function rateFor(what: string, rates: Rates): NanosPerMillion {
  if (Object.hasOwn(fallbackBuckets, what)) return rateOfBucket(what as Bucket, rates)
  const unit = units.find(name => unitNames[name] === what)
  return rateOfEach((unit === undefined ? rates.perRequest : rates[unitFees[unit]]) ?? (0n as never))
}

function rateOfBucket(bucket: Bucket, rates: Rates): NanosPerMillion {
  const priced = [bucket, ...fallbackBuckets[bucket]].find(name => rates[name] !== undefined)
  return priced === undefined ? (0n as NanosPerMillion) : rates[priced]!
}

/** The kind of input that each kind of cached input would be without a cache. */
const uncached: ReadonlyMap<string, Bucket> = new Map([
  ['cacheRead', 'input'],
  ['cacheWrite', 'input'],
  ['cacheWrite1h', 'input'],
  ['cacheReadAudio', 'inputAudio'],
  ['cacheReadImage', 'inputImage'],
])

/** The savings before the tier's multiplier. They are negative where writing to a cache cost more than it saved. */
function savingsOf(lines: readonly NamedLine[], pinned: PriceVersionRates | undefined): bigint {
  let sum = 0n
  for (const { what, count, rate } of lines) {
    const plain = uncached.get(what)
    if (plain === undefined) continue
    const billed = lines.find(line => line.what === plain)?.rate
    const full = billed ?? (pinned === undefined ? rate : rateOfBucket(plain, pinned.rates))
    sum += BigInt(count) * (full - rate)
  }
  return sum / MILLION
}
