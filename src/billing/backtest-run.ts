// Works out anew what calls of a range came to, newest first and for a while: sums, by model and by day, and how far
// it came.

import { msOfId } from '../base/ids.ts'
import type { Price } from '../base/money/price.ts'
import { parsePrice } from '../base/money/price.ts'
import type { BilledRow } from '../store/ledger/billed-calls.ts'
import { BilledCalls } from '../store/ledger/billed-calls.ts'
import type { RecordFilter } from '../store/records/search.ts'
import type { Proposal, Unknown } from './backtest.ts'
import { recompute } from './backtest.ts'
import { readRow } from './price-book.ts'

export interface BacktestAsk {
  /** Of the database. */
  readonly path: string
  readonly filter: RecordFilter
  /** Only calls of keys that are of this tier now. */
  readonly tier?: string
  /** JSON of a price, or a multiplier in thousandths. */
  readonly proposal: { readonly price: string } | { readonly perMille: number }
  readonly msMax: number
}

/** Money in decimal digits. */
export interface BacktestSums {
  readonly calls: number
  readonly was: string
  readonly wouldBe: string
}

export interface BacktestResult extends BacktestSums {
  readonly byModel: Readonly<Record<string, BacktestSums>>
  /** Days of UTC. */
  readonly byDay: Readonly<Record<string, BacktestSums>>
  /** Calls that are in none of the sums. */
  readonly leftOut: Readonly<Partial<Record<Unknown, number>>>
  /** The oldest call that was looked at, where the time was over before the range was; null: all of it was. */
  readonly reached: number | null
}

interface Sum {
  calls: number
  was: bigint
  wouldBe: bigint
}

/** Groups that are told one by one; the rest are under one name. */
const GROUPS_MAX = 1_000
const OTHERS = 'others'

class Sums {
  readonly #groups = new Map<string, Sum>()

  add(name: string, was: bigint, wouldBe: bigint): void {
    const known = this.#groups.has(name) || this.#groups.size < GROUPS_MAX ? name : OTHERS
    let sum = this.#groups.get(known)
    if (sum === undefined) this.#groups.set(known, (sum = { calls: 0, was: 0n, wouldBe: 0n }))
    sum.calls++
    sum.was += was
    sum.wouldBe += wouldBe
  }

  tell(): Readonly<Record<string, BacktestSums>> {
    const rows = [...this.#groups].map(([name, sum]): readonly [string, BacktestSums] => [name, tellSum(sum)])
    return Object.fromEntries(rows)
  }
}

const tellSum = ({ calls, was, wouldBe }: Sum): BacktestSums => ({ calls, was: `${was}`, wouldBe: `${wouldBe}` })

export function runBacktest(ask: BacktestAsk, nowMs: () => number): BacktestResult {
  const calls = new BilledCalls(ask.path)
  try {
    return backtest(ask, calls, nowMs)
  } finally {
    calls.close()
  }
}

function backtest({ filter, tier, proposal, msMax }: BacktestAsk, from: BilledCalls, nowMs: () => number) {
  const tried: Proposal =
    'price' in proposal ? { price: priceIn(proposal.price) } : { perMille: BigInt(proposal.perMille) }
  const prices = priceReader(from)
  const [whole, byModel, byDay] = [{ calls: 0, was: 0n, wouldBe: 0n }, new Sums(), new Sums()]
  const leftOut: Partial<Record<Unknown, number>> = {}
  const endMs = nowMs() + msMax
  let after: number | undefined
  for (let more = true; more; ) {
    const { rows, next } = from.page(filter, after)
    for (const row of rows) {
      if (tier !== undefined && row.tier !== tier) continue
      const price = row.priceVersion === null ? undefined : prices(row.priceVersion)
      const wouldBe = recompute({ ...row, atMs: msOfId(row.callId), price }, tried)
      if (typeof wouldBe === 'string') {
        leftOut[wouldBe] = (leftOut[wouldBe] ?? 0) + 1
        continue
      }
      whole.calls++
      whole.was += row.amount
      whole.wouldBe += wouldBe
      byModel.add(row.model, row.amount, wouldBe)
      byDay.add(dayOf(row), row.amount, wouldBe)
    }
    after = next ?? undefined
    more = next !== null && nowMs() < endMs
  }
  return { ...tellSum(whole), byModel: byModel.tell(), byDay: byDay.tell(), leftOut, reached: after ?? null }
}

const dayOf = ({ callId }: BilledRow): string => new Date(msOfId(callId)).toISOString().slice(0, 10)

function priceIn(text: string): Price {
  return parsePrice(JSON.parse(text), problem => {
    throw new Error(problem)
  })
}

/** Each version is read once. */
function priceReader(from: BilledCalls): (version: number) => Price | undefined {
  const known = new Map<number, Price | undefined>()
  return version => {
    if (known.has(version)) return known.get(version)
    const row = from.price(version)
    let price: Price | undefined
    try {
      price = row === undefined ? undefined : readRow(row.model, version, row.price)
    } catch {
      price = undefined
    }
    known.set(version, price)
    return price
  }
}
