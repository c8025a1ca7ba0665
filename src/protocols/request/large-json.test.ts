// Tests the reader of large bodies: its results, and its worker that fails or is closed.

import { afterAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { bounds } from '../../base/bounds.ts'
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

const bodyOf = (bytes: number): Buffer =>
  Buffer.from(Uint8Array.from(Buffer.from(JSON.stringify({ input: 'x'.repeat(bytes) }))).buffer)

const SCHED_IDLE = 5

/** The scheduling policy of a thread; undefined if the thread has ended meanwhile. */
function policyOf(thread: string): number | undefined {
  try {
    // The name of a thread, in parentheses, may contain spaces.
    const fields = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ')[1]!.split(' ')
    return Number(fields[38])
  } catch {
    return undefined
  }
}

/** The threads of this process that run only while the core is idle. */
const idleThreads = (): readonly string[] =>
  readdirSync('/proc/self/task').filter(thread => policyOf(thread) === SCHED_IDLE)

const listOf = (count: number): Buffer =>
  Buffer.from(Uint8Array.from(Buffer.from(`{"x":[${'{},'.repeat(count)}0]}`)).buffer)

test.if(process.platform === 'linux')('only very large or dense bodies are read while the core is idle', async () => {
  for (const [isIdle, body] of [
    [false, bodyOf(bounds.promptBytesMax / 2)],
    [false, listOf(20_000)],
    [true, bodyOf(bounds.promptBytesMax)],
    [true, listOf(50_000)],
  ] as const) {
    const other = new LargeBodyReader({ deadlines, onFault: detail => faults.push(detail) })
    const before = new Set(idleThreads())
    const text = body.toString()
    const read = await other.read(body, owner)
    expect(idleThreads().filter(thread => !before.has(thread))).toHaveLength(isIdle ? 1 : 0)
    expect(read.toString()).toBe(text)
    expect(getBodyHash(read)).toBe(createHash('sha256').update(text).digest('hex'))
    other.close()
  }
})

test('after a body its account waits the longer the larger the body was', async () => {
  const timers = spyOn(globalThis, 'setTimeout')
  try {
    await reader.read(bodyOf(bounds.promptBytesMax / 2), { ...owner, name: 'third' })
    await Promise.resolve() // The queue frees its slot after the answer.
    const longestMs = Math.max(...timers.mock.calls.map(([, ms]) => Number(ms ?? 0)).filter(ms => ms < 1_000))
    expect(longestMs).toBeGreaterThan(4)
  } finally {
    timers.mockRestore()
  }
})
