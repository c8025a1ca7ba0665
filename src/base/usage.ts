// Tokens in disjoint buckets: their sum is the provider's total, so that pricing never has to know whose numbers
// it reads. Dialects differ (one leaves cached input out of its input count, another leaves it in); that ends in
// the dialect's reader.

export interface Usage {
  /** Input that was not found in the provider's prompt cache. */
  readonly input: number
  readonly cacheRead: number
  /** Everything the model wrote, reasoning included. */
  readonly output: number
}

export type UsageSource = 'reported' | 'estimated' | 'none'

export const noUsage: Usage = { input: 0, cacheRead: 0, output: 0 }

/** A count as a provider should report it. Negative, fractional, absurd or textual ones are none. */
export function tokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= 1e12
    ? (value as number)
    : undefined
}
