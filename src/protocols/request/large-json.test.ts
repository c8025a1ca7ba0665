// Tests the reader of large bodies: its results, and its worker that fails or is closed.

import { afterAll, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { getBodyHash, LargeBodyReader } from './large-json.ts'

const faults: string[] = []
const deadlines = new Deadlines(() => performance.now())
const reader = new LargeBodyReader({ deadlines, onFault: detail => faults.push(detail) })
const owner = { name: 'account', throwIfGone() {} }
const text = JSON.stringify({ model: 'm', input: 'x'.repeat(100_000) })

beforeEach(() => {
  faults.splice(0)
})
afterAll(() => reader.close())

/** A buffer of its own, because reading transfers its memory. */
const body = (): Buffer => Buffer.from(Uint8Array.from(Buffer.from(text)).buffer)

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'read',
    (fault: unknown) => (fault instanceof Refusal ? fault.code : fault),
  )

test('a body keeps its bytes and gets a hash; the memory that it came in is transferred', async () => {
  const received = body()
  const read = await reader.read(received, owner)
  expect(read.toString()).toBe(text)
  expect(getBodyHash(read)).toBe(createHash('sha256').update(text).digest('hex'))
  expect(received.length).toBe(0)
})

test('after an error in the worker the body is refused, the error is reported, and the next body is read', async () => {
  expect(await codeOf(reader.read(body(), owner, {} as never))).toBe('draining')
  expect(faults).toHaveLength(1)
  expect(await codeOf(reader.read(body(), owner))).toBe('read')
  expect(faults).toHaveLength(1)
})

test('bodies are refused when the reader closes, and the next one is read', async () => {
  const isSent = Promise.withResolvers<void>()
  const waiting = codeOf(reader.read(body(), { name: 'another', throwIfGone: isSent.resolve })) // throwIfGone is called just before the body is sent
  await isSent.promise
  reader.close()
  expect(await waiting).toBe('draining')
  expect(await codeOf(reader.read(body(), owner))).toBe('read')
  expect(faults).toEqual([])
})
