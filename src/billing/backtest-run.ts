// Recomputes the cost of recorded calls at another price, newest first and for a limited time. Returns sums in total, by
// model and by day, and how far it got.

import { msOfId } from '../base/ids.ts'
import type { Price } from '../base/money/price.ts'
import { parsePrice } from '../base/money/price.ts'
import type { DataPlace } from '../store/engine/thread-reads.ts'
import type { BilledRow } from '../store/ledger/billed-calls.ts'
import { BilledCalls } from '../store/ledger/billed-calls.ts'
import type { RecordFilter } from '../store/records/record-search.ts'
import type { BacktestSkipReason, Proposal } from './backtest.ts'
import { recompute } from './backtest.ts'
import { parsePriceRow } from './price-book.ts'

export interface BacktestRequest {
  readonly place: DataPlace
  readonly filter: RecordFilter
  /** Only calls of keys that have this tier now. */
  readonly tier?: string
  /** The JSON of a price, or a multiplier in thousandths. */
  readonly proposal: { readonly price: string } | { readonly perMille: number }
  readonly msMax: number
}

/** Amounts are nanodollars in decimal digits. */
export interface BacktestSums {
  readonly calls: number
  readonly was: string
  readonly wouldBe: string
}

export interface BacktestResult extends BacktestSums {
  readonly byModel: Readonly<Record<string, BacktestSums>>
  /** By day in UTC. */
  readonly byDay: Readonly<Record<string, BacktestSums>>
  /** Calls that are not in the sums, by reason. */
  readonly leftOut: Readonly<Partial<Record<BacktestSkipReason, number>>>
  /** The oldest call that was read, if the time was over first; null: the whole range was read. */
  readonly reached: number | null
}

interface Sum {
  calls: number
  was: bigint
  wouldBe: bigint
}

/** The most groups that are listed separately; the rest are summed up under one name. */
const GROUPS_MAX = 1_000
const OTHERS = 'others'

class Sums {
  readonly #groups = new Map<string, Sum>()

  add(name: string, was: bigint, wouldBe: bigint): void {
    const group = this.#groups.has(name) || this.#groups.size < GROUPS_MAX ? name : OTHERS
    let sum = this.#groups.get(group)
    if (sum === undefined) this.#groups.set(group, (sum = { calls: 0, was: 0n, wouldBe: 0n }))
    sum.calls++
    sum.was += was
    sum.wouldBe += wouldBe
  }

  toJson(): Readonly<Record<string, BacktestSums>> {
    const rows = [...this.#groups].map(([name, sum]): readonly [string, BacktestSums] => [name, sumToJson(sum)])
    return Object.fromEntries(rows)
  }
}

const sumToJson = ({ calls, was, wouldBe }: Sum): BacktestSums => ({ calls, was: `${was}`, wouldBe: `${wouldBe}` })

export async function runBacktest(request: BacktestRequest, nowMs: () => number): Promise<BacktestResult> {
  const calls = new BilledCalls(request.place)
  try {
    return await backtest(request, calls, nowMs)
  } finally {
    calls.close()
  }
}

async function backtest(
  { filter, tier, proposal, msMax }: BacktestRequest,
  calls: BilledCalls,
  nowMs: () => number,
): Promise<BacktestResult> {
  const proposed: Proposal =
    'price' in proposal ? { price: parsePriceText(proposal.price) } : { perMille: BigInt(proposal.perMille) }
  const readPrice = priceReader(calls)
  const [total, byModel, byDay] = [{ calls: 0, was: 0n, wouldBe: 0n }, new Sums(), new Sums()]
  const leftOut: Partial<Record<BacktestSkipReason, number>> = {}
  const endMs = nowMs() + msMax
  let after: number | undefined
  for (let more = true; more; ) {
    const { rows, next } = await calls.readPage(filter, after)
    for (const row of rows) {
      if (tier !== undefined && row.tier !== tier) continue
      const price = row.priceVersion === null ? undefined : await readPrice(row.priceVersion)
      const wouldBe = recompute({ ...row, atMs: msOfId(row.callId), price }, proposed)
      if (typeof wouldBe === 'string') {
        leftOut[wouldBe] = (leftOut[wouldBe] ?? 0) + 1
        continue
      }
      total.calls++
      total.was += row.amount
      total.wouldBe += wouldBe
      byModel.add(row.model, row.amount, wouldBe)
      byDay.add(dayOf(row), row.amount, wouldBe)
    }
    after = next ?? undefined
    more = next !== null && nowMs() < endMs
  }
  return { ...sumToJson(total), byModel: byModel.toJson(), byDay: byDay.toJson(), leftOut, reached: after ?? null }
}

const dayOf = ({ callId }: BilledRow): string => new Date(msOfId(callId)).toISOString().slice(0, 10)

function parsePriceText(text: string): Price {
  return parsePrice(JSON.parse(text), problem => {
    throw new Error(problem)
  })
}

/** Reads prices by version, each version once. */
function priceReader(calls: BilledCalls): (version: number) => Promise<Price | undefined> {
  const known = new Map<number, Price | undefined>()
  return async version => {
    if (known.has(version)) return known.get(version)
    const row = await calls.price(version)
    let price: Price | undefined
    try {
      price = row === undefined ? undefined : parsePriceRow(row.model, version, row.price)
    } catch {
      price = undefined
    }
    known.set(version, price)
    return price
  }
}
