// What a record says of money beyond its charge: what the provider asks for the same usage, and what its cached input
// saved. Worked out from the lines of the bill and the versions of prices.
//
// A call at a shipped price cost us what its lines come to before the tier's multiplier. At an operator's own price it
// cost what the same counts come to at the plain rates that were shipped for the model by then: its cases (long input,
// hours, classes) are not looked at. What a provider bills for calls without usage is not known.

import type { Database } from 'bun:sqlite'
import type { Line, NanosPerMillion } from '../../base/money/money.ts'
import { bill, eachAsRate, parseUsd } from '../../base/money/money.ts'
import type { Rates } from '../../base/money/price.ts'
import { neighbours, parsePrice, unitFees, unitNames } from '../../base/money/price.ts'
import type { Bucket } from '../../base/money/usage.ts'
import { units } from '../../base/money/usage.ts'

export interface BilledRecord {
  readonly provider: string | null
  readonly model: string | null
  readonly price_version: bigint | null
  readonly lines: string | null
  /** What its caller paid and what was missing: the whole bill. */
  readonly billed: bigint
  readonly atMs: number
}

export interface RecordMoney {
  readonly providerCost: bigint
  readonly cacheSavings: bigint
}

const nothing: RecordMoney = { providerCost: 0n, cacheSavings: 0n }

interface NamedLine extends Line {
  readonly what: string
}

interface Version {
  readonly version: number
  readonly origin: string
  readonly madeMs: number
  readonly rates: Rates
}

/** A million dollars: more comes from nonsense, and many of them must still add up in 64 bits. */
const AMOUNT_MAX = 1_000_000_000_000_000n
const MILLION = 1_000_000n
const RATES_KEPT_MAX = 10_000

export class MoneyOfRecords {
  readonly #last
  readonly #ofModel
  /** By model, newest first; as of the last version. */
  readonly #versions = new Map<string, readonly Version[]>()
  readonly #rates = new Map<string, NanosPerMillion>()
  #version = -1n

  constructor(db: Database) {
    this.#last = db.query('SELECT coalesce(max(version), 0) AS version FROM price')
    this.#ofModel = db.query('SELECT version, origin, price, made_ms FROM price WHERE model = ?1 ORDER BY version DESC')
  }

  /** Before some are asked for: prices may have been added. */
  renew(): void {
    const { version } = this.#last.get() as { version: bigint }
    if (version !== this.#version) this.#versions.clear()
    this.#version = version
  }

  of(record: BilledRecord): RecordMoney {
    const lines = record.lines === null ? [] : this.#linesOf(record.lines)
    if (lines.length === 0) return nothing
    const versions = this.#versionsOf(`${record.provider}/${record.model}`)
    const pinned = versions.find(({ version }) => version === Number(record.price_version))
    const listed = bill(lines)
    return {
      providerCost: bounded(pinned?.origin === 'operator' ? shippedCost(lines, versions, record.atMs) : listed),
      cacheSavings: bounded(listed === 0n ? 0n : (savingsOf(lines, pinned) * record.billed) / listed),
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
      if (this.#rates.size >= RATES_KEPT_MAX) this.#rates.clear()
      this.#rates.set(text, rate)
    }
    return rate
  }

  #versionsOf(model: string): readonly Version[] {
    let versions = this.#versions.get(model)
    if (versions === undefined) {
      versions = (this.#ofModel.all(model) as PriceRow[]).flatMap(readVersion)
      this.#versions.set(model, versions)
    }
    return versions
  }
}

interface PriceRow {
  readonly version: bigint
  readonly origin: string
  readonly price: string
  readonly made_ms: bigint
}

/** None of one that nobody can read. */
function readVersion({ version, origin, price, made_ms: madeMs }: PriceRow): Version[] {
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

const bounded = (amount: bigint): bigint =>
  amount > AMOUNT_MAX ? AMOUNT_MAX : amount < -AMOUNT_MAX ? -AMOUNT_MAX : amount

/** What was shipped by then; where nothing was, what is charged is all that is known. */
function shippedCost(lines: readonly NamedLine[], versions: readonly Version[], atMs: number): bigint {
  const shipped = versions.filter(({ origin }) => origin === 'shipped')
  const then = shipped.find(({ madeMs }) => madeMs <= atMs) ?? shipped.at(-1)
  if (then === undefined) return bill(lines)
  return bill(lines.map(({ what, count }) => ({ count, rate: rateFor(what, then.rates) })))
}

function rateFor(what: string, rates: Rates): NanosPerMillion {
  if (Object.hasOwn(neighbours, what)) return rateOfBucket(what as Bucket, rates)
  const unit = units.find(one => unitNames[one] === what)
  return eachAsRate((unit === undefined ? rates.perRequest : rates[unitFees[unit]]) ?? (0n as never))
}

function rateOfBucket(bucket: Bucket, rates: Rates): NanosPerMillion {
  const named = [bucket, ...neighbours[bucket]].find(one => rates[one] !== undefined)
  return named === undefined ? (0n as NanosPerMillion) : rates[named]!
}

/** What each kind of cached input would have been, had there been no cache. */
const uncached: ReadonlyMap<string, Bucket> = new Map([
  ['cacheRead', 'input'],
  ['cacheWrite', 'input'],
  ['cacheWrite1h', 'input'],
  ['cacheReadAudio', 'inputAudio'],
  ['cacheReadImage', 'inputImage'],
])

/** Before the tier's multiplier. To write to a cache may cost more than it saves. */
function savingsOf(lines: readonly NamedLine[], pinned: Version | undefined): bigint {
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
