// How much was read and written in all, from a report whose vendor leaves some of it out of its totals.
//
// Most vendors count what was read from a cache and what was written to it within the input, and reasoning within the
// output. Some leave out what was written to the cache, some leave out both, some leave out reasoning; each of these is
// documented by somebody. The total tells which of them holds; without one, the first that does not contradict itself.

export interface SaidTokens {
  readonly input: number
  readonly output: number
  readonly total: number | undefined
  /** Of the input: read from the cache, and written to it. */
  readonly cached: number
  readonly written: number
  /** Of the output. */
  readonly reasoning: number
}

export interface TokenSums {
  /** All that was read, and all that was written. */
  readonly input: number
  readonly output: number
}

/** Undefined for what adds up in none of these ways. What is no count is NaN, with which no comparison holds. */
export function sumsOf({ input, output, total, cached, written, reasoning }: SaidTokens): TokenSums | undefined {
  const inputs = [
    ...(cached + written <= input ? [input] : []),
    ...(cached <= input ? [input + written] : []),
    input + cached + written,
  ]
  const outputs = [...(reasoning <= output ? [output] : []), output + reasoning]
  if (![...inputs, ...outputs].every(sum => sum >= 0)) return undefined
  const [least, shown] = [inputs[0]!, outputs[0]!]
  if (total === undefined) return { input: least, output: shown }
  for (const read of inputs) {
    for (const wrote of outputs) if (read + wrote === total) return { input: read, output: wrote }
  }
  // Where the total is greater than its parts, what is missing was written as well.
  if (total > least + output) return total - least >= reasoning ? { input: least, output: total - least } : undefined
  // A total may be no more than what stands at the top, and leave out what the details tell.
  return total === input + output ? { input: least, output: shown } : undefined
}
