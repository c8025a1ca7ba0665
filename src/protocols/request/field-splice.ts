// Adds a top-level field to the body of a request and leaves all other bytes unchanged.

import type { Call } from '../neutral/call.ts'
import type { Splice } from './splices.ts'

/** Inserts the field before all others. The body has at least one field. */
export function insertField(call: Call, name: string, value: string): Splice {
  const open = call.body.indexOf(0x7b) + 1
  return { start: open, end: open, text: `"${name}":${value},` }
}
