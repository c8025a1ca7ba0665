// Tokens in disjoint buckets: their sum is the provider's total, so that pricing never has to know whose numbers
// it reads. Dialects differ (one leaves cached input out of its input count, another leaves it in); that ends in
// the dialect's reader.

/** What is read by the model. */
export const inputBuckets = [
  'input', // not found in the provider's prompt cache
  'cacheRead',
  'cacheWrite', // written to the cache for five minutes, or however long the provider keeps it by default
  'cacheWrite1h',
  'inputAudio',
  'cacheReadAudio',
  'inputImage',
  'cacheReadImage',
  'toolUse', // what the provider's own tools added to the prompt
] as const

/** What is written by the model. */
export const outputBuckets = ['output', 'reasoning', 'outputAudio', 'outputImage'] as const

export const buckets = [...inputBuckets, ...outputBuckets] as const

export type Bucket = (typeof buckets)[number]

/**
 * What a provider counts and bills one by one; not tokens. `searches` that it made, `images` that it drew, `characters`
 * that it was given to speak, `seconds` of sound that it heard, `fileSearches` in files that it keeps,
 * `codeSessions` of a machine that ran code, `groundedCalls`: one for a call in which it searched, however often.
 */
export const units = [
  ...(['searches', 'images', 'characters', 'seconds'] as const),
  ...(['fileSearches', 'codeSessions', 'groundedCalls'] as const),
] as const

export type Unit = (typeof units)[number]

export type Units = Readonly<Partial<Record<Unit, number>>>

/** An absent bucket is empty. `input` and `output` are always there. */
export interface Usage extends Readonly<Partial<Record<Bucket, number>>>, Units {
  readonly input: number
  readonly output: number
}

export type UsageSource = 'reported' | 'estimated' | 'none'

/** What a provider says of usage, or that it says what cannot be. */
export type UsageReport = Usage | 'nonsense'

export const noUsage: Usage = { input: 0, output: 0 }

/** A thousand times what any model reads or writes in one call. */
const COUNT_MAX = 1e9

/** A count as a provider should report it. Negative, fractional, absurd or textual ones are none. */
export function tokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= COUNT_MAX
    ? (value as number)
    : undefined
}

/** Reports of one stream count up; one that counts down is not to be believed. */
export function shrinks(earlier: Usage, later: Usage): boolean {
  return inputTokens(later) < inputTokens(earlier) || outputTokens(later) < outputTokens(earlier)
}

export function inputTokens(usage: Usage): number {
  let sum = 0
  for (const bucket of inputBuckets) sum += usage[bucket] ?? 0
  return sum
}

export function outputTokens(usage: Usage): number {
  let sum = 0
  for (const bucket of outputBuckets) sum += usage[bucket] ?? 0
  return sum
}
