// Makes long bodies from short texts: a text has a placeholder, and the filling is generated while it is written.

import { assert } from '../../../src/base/assert.ts'
import { toBytes } from '../script.ts'

/** The placeholder in the text of an answer. */
export const placeholder = '<hole>'

const pieceBytesMax = 64 * 1024

/** The text with its placeholder replaced by `x`, so that it is `length` bytes long. */
export function* fillTo(length: number, text: string): Iterable<Uint8Array> {
  const [before = '', after, ...more] = text.split(placeholder)
  assert(after !== undefined && more.length === 0, 'the text has one hole')
  const [start, last] = [toBytes(before), toBytes(after)]
  yield start
  yield* repeatCharacter('x', Math.max(length - start.length - last.length, 0))
  yield last
}

export function measureFilled(length: number, text: string): number {
  return Math.max(length, toBytes(text).length - placeholder.length)
}

export function* repeatCharacter(character: string, count: number): Iterable<Uint8Array> {
  const piece = Buffer.alloc(Math.min(count, pieceBytesMax), character)
  for (let left = count; left > 0; left -= piece.length) yield piece.subarray(0, left)
}
