// Ids of tool calls that are longer than an upstream accepts.

import { createHash } from 'node:crypto'

/** Returns the id itself or its hash, which is the same in the call, in its result and in every turn. */
export const shortCallId = (id: string, charsMax: number): string =>
  id.length <= charsMax ? id : `call_${createHash('sha256').update(id).digest('hex').slice(0, 32)}`
