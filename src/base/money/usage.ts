// Usage: tokens in disjoint buckets whose sum is the provider's total. Dialects count differently (some include cached
// input in their input count, some do not). The reader of each dialect removes the difference, so that pricing does not
// depend on the dialect.

/** Tokens that the model reads. */
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

/** Tokens that the model writes. */
export const outputBuckets = ['output', 'reasoning', 'outputAudio', 'outputImage'] as const

export const buckets = [...inputBuckets, ...outputBuckets] as const

export type Bucket = (typeof buckets)[number]

/**
 * Units that a provider bills besides tokens: web searches, generated images, characters of text to speech, seconds of
 * transcribed audio, searches in stored files, sessions of a code interpreter, and grounded calls (one for each call
 * that searched, however often).
 */
export const units = [
  'searches',
  'images',
  'characters',
  'seconds',
  'fileSearches',
  'codeSessions',
  'groundedCalls',
] as const

export type Unit = (typeof units)[number]

export type Units = Readonly<Partial<Record<Unit, number>>>

/** An absent bucket is empty. `input` and `output` are always present. */
export interface Usage extends Readonly<Partial<Record<Bucket, number>>>, Units {
  readonly input: number
  readonly output: number
  /**
   * The longest input of one reading, where the model read more than once and the provider reports each reading. It
   * decides whether the rates of long inputs apply.
   */
  readonly longestInput?: number
  /** How many tokens of `cacheWrite` the provider may keep for longer, because its report does not say for how long. */
  readonly untimedWrites?: number
}

export type UsageSource = 'reported' | 'estimated' | 'none'

/** The usage that a provider reports; `nonsense` for impossible numbers. */
export type UsageReport = Usage | 'nonsense'

export const noUsage: Usage = { input: 0, output: 0 }

/** A thousand times what any model reads or writes in one call. Higher counts are rejected. */
const COUNT_MAX = 1e9

/** Reads a token count of a provider. Undefined if it is negative, fractional, absurdly high or no number. */
export function tokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= COUNT_MAX
    ? (value as number)
    : undefined
}

/** Reports within one stream only count up. A later report with fewer tokens is wrong. */
export function usageShrinks(earlier: Usage, later: Usage): boolean {
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
