// The hash of a body is the same at once and in pieces.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { DeferredHash, hashBody } from './body-hash.ts'

const piece = bounds.hashSliceBytesMax
const sizes = [0, 1, piece, piece + 1, 3 * piece, 3 * piece + 7]
const bodyOf = (size: number): Buffer => Buffer.alloc(size, 'some words ')

test.each(sizes)('the hash of %i bytes is the same at once and in pieces', async size => {
  const body = bodyOf(size)
  const hash = new DeferredHash(body)
  expect(hash.isDone).toBe(size <= piece)
  expect(hash.text).toBe(hashBody(body))
  expect(await new DeferredHash(body).complete()).toBe(hashBody(body))
})

test('a large body is hashed in slices, so that other work runs in between', async () => {
  const slow = new DeferredHash(bodyOf(8 * piece))
  let ticks = 0
  while (!slow.isDone) {
    await new Promise(setImmediate)
    ticks++
  }
  expect(ticks).toBeGreaterThanOrEqual(8)
})
