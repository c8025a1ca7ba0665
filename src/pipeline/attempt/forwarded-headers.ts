// Which of a caller's headers go to an upstream that speaks the same dialect.

import type { Protocol } from '../../protocols/protocol.ts'

interface Headed {
  header(name: string): string | undefined
}

/** Visible characters only, and no more than a head may have. */
export function passedHeaders({ passes }: Protocol, asked: Headed): Record<string, string> | undefined {
  if (passes === undefined) return undefined
  const passed: Record<string, string> = {}
  for (const name of passes) {
    const value = asked.header(name)
    if (value !== undefined && /^[\x20-\x7e]{1,4096}$/.test(value)) passed[name] = value
  }
  return passed
}
