// Checks claims about the gateway's own code. A mistake of a caller is a Refusal (errors.ts), not a failed assertion.

export function assert(condition: unknown, claim: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${claim}`)
}
