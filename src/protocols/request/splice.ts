// Replaces byte ranges and leaves every other byte as it was.

import { assert } from '../../base/assert.ts'

export interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

export function spliced(body: Uint8Array, splices: readonly Splice[]): Uint8Array {
  const ordered = [...splices].sort((a, b) => a.start - b.start)
  const parts: Uint8Array[] = []
  let at = 0
  for (const { start, end, text } of ordered) {
    assert(start >= at && end >= start && end <= body.byteLength, 'splices lie in order inside the body')
    parts.push(body.subarray(at, start), Buffer.from(text, 'utf8'))
    at = end
  }
  parts.push(body.subarray(at))
  return Buffer.concat(parts)
}
