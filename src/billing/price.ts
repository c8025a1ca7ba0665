// Usage and price to money, and the most that a call can come to.

import type { Nanos, NanosPerMillion } from '../base/money.ts'
import { bill, noMoney } from '../base/money.ts'
import type { Usage } from '../base/usage.ts'

export interface Price {
  readonly input: NanosPerMillion
  readonly cacheRead: NanosPerMillion
  readonly output: NanosPerMillion
  /** The tier's multiplier. */
  readonly perMille: bigint
}

/** Undefined: free of charge, as the provider's data says. */
export type PriceOrFree = Price | undefined

export function costOf(usage: Usage, price: PriceOrFree): Nanos {
  if (price === undefined) return noMoney
  const lines = [
    [usage.input, price.input],
    [usage.cacheRead ?? 0, price.cacheRead],
    [usage.output, price.output],
  ] as const
  return bill(lines, price.perMille)
}

export interface CallSize {
  /** Bytes of text, or more where not all input is in the request. */
  readonly inputTokensMax: number
  /** The cap on one choice: the caller's, or the model's own. */
  readonly outputTokensMax: number
  readonly choices: number
}

/**
 * The most a call should cost, by the limits we know. A token of a byte-level vocabulary is at least a byte long, so
 * a body of text bounds its own input; nothing bounds the output but its cap.
 */
export function upperBound(size: CallSize, price: PriceOrFree): Nanos {
  if (price === undefined) return noMoney
  const dearest = price.input > price.cacheRead ? price.input : price.cacheRead
  const lines = [
    [size.inputTokensMax, dearest],
    [size.outputTokensMax * size.choices, price.output],
  ] as const
  return bill(lines, price.perMille)
}

const CHARS_PER_TOKEN = 4

/** A count of our own, for a caller that left before the provider reported one. Marked as estimated in the record. */
export function estimateUsage(bodyBytes: number, outputChars: number): Usage {
  return {
    input: Math.ceil(bodyBytes / CHARS_PER_TOKEN),
    cacheRead: 0,
    output: Math.ceil(outputChars / CHARS_PER_TOKEN),
  }
}
