// Replaces byte ranges of a body and leaves all other bytes unchanged.

import { assert } from '../../base/assert.ts'

export interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

export function applySplices(body: Buffer, splices: readonly Splice[]): Uint8Array {
  const ordered = splices.length > 1 ? [...splices].sort((a, b) => a.start - b.start) : splices
  let length = body.length
  let position = 0
  for (const { start, end, text } of ordered) {
    assert(start >= position && end >= start && end <= body.length, 'splices do not overlap and are inside the body')
    length += Buffer.byteLength(text) - (end - start)
    position = end
  }
  const result = Buffer.allocUnsafe(length)
  position = 0
  let at = 0
  for (const { start, end, text } of ordered) {
    at += body.copy(result, at, position, start)
    at += result.write(text, at)
    position = end
  }
  body.copy(result, at, position)
  return result
}
