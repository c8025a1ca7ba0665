// For our own mistakes. A caller's mistake is a Refusal (errors.ts).

export function assert(condition: unknown, claim: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${claim}`)
}
