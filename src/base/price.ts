// What a model costs, as data: rates, and cases in which other rates apply. Provider files and operators write it in
// the same shape; parsePrice() checks it.
//
// {"input": "2.50", "output": "15", "cacheRead": "0.25",
//  "cases": [{"inputAbove": 271999, "input": "5", "output": "22.50"}, {"class": "priority", "input": "5"}]}
//
// Rates are decimal texts, USD for a million tokens (perRequest and perSearch: USD each) unless "currency" names
// another, with the rate it is converted at pinned beside it. A case states what differs; of several that apply, later
// ones win. A bucket without a rate of its own takes that of its neighbour (see `neighbours` in billing/price.ts).

import type { Nanos, NanosPerMillion } from './money.ts'
import type { Bucket } from './usage.ts'

export interface Rates extends Readonly<Partial<Record<Bucket, NanosPerMillion>>> {
  readonly perRequest?: Nanos
  readonly perSearch?: Nanos
}

export interface PriceCase {
  /** The class of service asked for: `priority`, `flex`, `batch`. */
  readonly class?: string
  /** More input tokens than this, cached ones included. */
  readonly inputAbove?: number
  /** Minutes of the day in UTC, from and up to; may go over midnight. */
  readonly hours?: readonly [from: number, to: number]
  /** From this moment on (milliseconds since 1970). */
  readonly fromMs?: number
  readonly rates: Rates
}

export interface Price {
  readonly rates: Rates & { readonly input: NanosPerMillion; readonly output: NanosPerMillion }
  readonly cases: readonly PriceCase[]
  /** What the source says, where that is not USD. */
  readonly currency?: { readonly code: string; readonly unitsPerUsd: string }
}
