// Selects the caller's headers that are forwarded to an upstream of the same dialect.

import type { Protocol } from '../../protocols/protocol.ts'

interface HeaderSource {
  header(name: string): string | undefined
}

/** Only printable ASCII of a bounded length is forwarded. */
export function forwardedHeaders(
  { passedHeaders }: Protocol,
  request: HeaderSource,
): Record<string, string> | undefined {
  if (passedHeaders === undefined) return undefined
  const forwarded: Record<string, string> = {}
  for (const name of passedHeaders) {
    const value = request.header(name)
    if (value !== undefined && /^[\x20-\x7e]{1,4096}$/.test(value)) forwarded[name] = value
  }
  return forwarded
}
