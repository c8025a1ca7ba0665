// Replaces byte ranges of a body and leaves all other bytes unchanged.

import { assert } from '../../base/assert.ts'

export interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

export function applySplices(body: Uint8Array, splices: readonly Splice[]): Uint8Array {
  const ordered = [...splices].sort((a, b) => a.start - b.start)
  const parts: Uint8Array[] = []
  let position = 0
  for (const { start, end, text } of ordered) {
    assert(
      start >= position && end >= start && end <= body.byteLength,
      'splices do not overlap and are inside the body',
    )
    parts.push(body.subarray(position, start), Buffer.from(text, 'utf8'))
    position = end
  }
  parts.push(body.subarray(position))
  return Buffer.concat(parts)
}
