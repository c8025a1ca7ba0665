// Computes all input and output tokens from a usage report, whatever its vendor leaves out of the totals.
//
// Most vendors count cache reads and cache writes as part of the input, and reasoning as part of the output. Some leave
// out cache writes, some leave out both, some leave out reasoning. Each of these is documented by some vendor. The
// total shows which one applies. Without a total, the first one that is consistent applies.

import type { Usage } from '../../base/money/usage.ts'
import { tokenCount } from '../../base/money/usage.ts'

export type UsageBuckets = { -readonly [Name in keyof Usage]: Usage[Name] }

/** A missing count is 0. An invalid one is NaN, so that all later comparisons fail. */
export const readCountOrZero = (value: unknown): number =>
  value === undefined || value === null ? 0 : (tokenCount(value) ?? Number.NaN)

/** Sets a bucket unless it is empty. */
export function setBucket(usage: UsageBuckets, name: keyof Usage, tokens: number): void {
  if (tokens !== 0) usage[name] = tokens
}

export interface ReportedTokens {
  readonly input: number
  readonly output: number
  readonly total: number | undefined
  /** Cache reads and cache writes. */
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly reasoning: number
}

export interface TokenTotals {
  readonly input: number
  readonly output: number
}

/** Undefined if the report is inconsistent. An invalid count is NaN, so that all comparisons fail. */
export function computeTotals({
  input,
  output,
  total,
  cacheRead,
  cacheWrite,
  reasoning,
}: ReportedTokens): TokenTotals | undefined {
  const isPlain = cacheRead + cacheWrite <= input && reasoning <= output && input + output === total
  if (isPlain) return { input, output } // most reports: all parts are inside their totals
  const inputs = [
    ...(cacheRead + cacheWrite <= input ? [input] : []),
    ...(cacheRead <= input ? [input + cacheWrite] : []),
    input + cacheRead + cacheWrite,
  ]
  const outputs = [...(reasoning <= output ? [output] : []), output + reasoning]
  if (![...inputs, ...outputs].every(sum => sum >= 0)) return undefined
  const [inputMin, outputMin] = [inputs[0]!, outputs[0]!]
  if (total === undefined) return { input: inputMin, output: outputMin }
  for (const read of inputs) {
    for (const wrote of outputs) if (read + wrote === total) return { input: read, output: wrote }
  }
  // The total is greater than its parts: the rest is output.
  if (total > inputMin + output)
    return total - inputMin >= reasoning ? { input: inputMin, output: total - inputMin } : undefined
  // The total may be only input plus output, and leave out what the details add.
  return total === input + output ? { input: inputMin, output: outputMin } : undefined
}
