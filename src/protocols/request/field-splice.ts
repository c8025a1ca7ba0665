// Replaces or adds one top-level field of a request, and leaves every other byte as it was.

import type { Call } from '../neutral/call.ts'
import type { Splice } from './splice.ts'

/** A new field before all others, of which there is at least one. */
export function fieldSplice(call: Call, name: string, value: string): Splice {
  const open = call.body.indexOf(0x7b) + 1
  return { start: open, end: open, text: `"${name}":${value},` }
}
