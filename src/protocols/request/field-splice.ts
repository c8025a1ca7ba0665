// Adds or sets a top-level field in the body of a request and leaves all other bytes unchanged.

import type { Call } from '../neutral/call.ts'
import type { Splice } from './splices.ts'

/** Asks the upstream for a stream. */
export function streamSplice(call: Call): Splice {
  const given = call.fields.get('stream')
  return given === undefined ? insertField(call, 'stream', 'true') : { ...given, text: 'true' }
}

/** Inserts the field before all others. The body has at least one field. */
export function insertField(call: Call, name: string, value: string): Splice {
  const open = call.body.indexOf(0x7b) + 1
  return { start: open, end: open, text: `"${name}":${value},` }
}
