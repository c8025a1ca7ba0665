// The hash of a body is the same at once and in pieces.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { bodyHash, SlowHash } from './body-hash.ts'

const piece = bounds.hashedAtOnceBytesMax
const sizes = [0, 1, piece, piece + 1, 3 * piece, 3 * piece + 7]
const bodyOf = (size: number): Buffer => Buffer.alloc(size, 'some words ')

test.each(sizes)('the hash of %i bytes is the same at once and in pieces', async size => {
  const body = bodyOf(size)
  const asked = new SlowHash(body)
  expect(asked.isTaken).toBe(size <= piece)
  expect(asked.text).toBe(bodyHash(body))
  expect(await new SlowHash(body).whole()).toBe(bodyHash(body))
})

test('a large body is hashed between other work', async () => {
  const slow = new SlowHash(bodyOf(8 * piece))
  let turns = 0
  while (!slow.isTaken) {
    await new Promise(setImmediate)
    turns++
  }
  expect(turns).toBeGreaterThanOrEqual(8)
})
