// Tests the reader of large bodies: its results, its workers that fail, are closed or get no core, and bodies that wait too
// long.

import { afterAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { until } from '../../../test/support/gateway.ts'
import { HeldThreads } from '../../../test/support/held-threads.ts'
import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { WORK_RESTS } from '../../base/threads/body-wait.ts'
import { Thread } from '../../base/threads/thread.ts'
import { getBodyHash, HUGE_RESTS, LargeBodyReader, restAfter } from './large-json.ts'
import type { LargeBodyMethods, LargeBodySetup } from './large-json-thread.ts'

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

const listOf = (count: number): Buffer =>
  Buffer.from(Uint8Array.from(Buffer.from(`{"x":[${'{},'.repeat(count)}0]}`)).buffer)

test('very large and dense bodies have a worker of their own, for which long prompts do not wait', async () => {
  using held = new HeldReader(readsDense)
  const sizes = [bodyOf(bounds.promptBytesMax), listOf(50_000)]
  const [huge, dense] = sizes.map((body, at) => held.read(body, `large ${at}`))
  for (const prompt of [bodyOf(bounds.promptBytesMax / 2), listOf(20_000)])
    expect(await soon(held.read(prompt, 'prompts'))).toBe('read')
  expect(held.threads.requests).toHaveLength(1)
  held.threads.release()
  expect(await Promise.all([huge, dense])).toEqual(['read', 'read'])
})

test('all very large bodies wait several times as long as a thread has worked on the last one, and its account longer', () => {
  const counts = { values: 10_000, containers: 0, names: 0, fields: 0 }
  const body = { bytes: new Uint8Array(), found: { json: {}, counts } } as never
  const [quick, slow] = [0, 100].map(workMs => restAfter({ body, workMs }, 0, HUGE_RESTS))
  expect(quick).toEqual({ ownerMs: 19, totalMs: 5 })
  expect(slow).toEqual({ ownerMs: 19 + 100 * WORK_RESTS, totalMs: 5 + 100 * WORK_RESTS })
  expect(WORK_RESTS).toBe(availableParallelism() > 1 ? 3 : 8)
})

/** The scheduling policies of all threads of this process. The name of a thread, in parentheses, may contain spaces. */
const policies = (): readonly number[] =>
  readdirSync('/proc/self/task').flatMap(thread => {
    try {
      const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8')
      return [Number(stat.slice(stat.lastIndexOf(') ') + 2).split(' ')[38])]
    } catch {
      return [] // it has just ended
    }
  })

// Threads of the collector and the compiler inherit the policy of the thread that starts them, and all threads wait for them.
test.if(process.platform === 'linux')(
  'no thread may starve: all have the usual policy after a large body',
  async () => {
    expect(await codeOf(reader.read(bodyOf(2 * bounds.promptBytesMax), owner))).toBe('read')
    expect(new Set(policies())).toEqual(new Set([0]))
  },
)

test('a thread says how long it has worked on a body', async () => {
  const url = new URL('./large-json-thread.ts', import.meta.url)
  const setup = (): LargeBodySetup => ({ readsDense: true })
  const thread = new Thread<LargeBodyMethods, LargeBodySetup>({ url, setup })
  try {
    const workOf = async (text: string): Promise<number> =>
      (await thread.run('read', { bytes: Buffer.from(text), formType: undefined })).workMs
    // A string in which each character is escaped takes long to parse.
    expect(await workOf(`{"x":"${String.raw`\"`.repeat(2 * bounds.promptBytesMax)}"}`)).toBeGreaterThan(1)
  } finally {
    thread.stop()
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

/** A reader with a clock of its own. Some of its threads get no core. */
class HeldReader implements Disposable {
  readonly threads: HeldThreads
  readonly reader: LargeBodyReader
  readonly deadlines: Deadlines
  #nowMs = 0

  constructor(isHeld: (setup: LargeBodySetup) => boolean) {
    this.threads = new HeldThreads('large-json-thread.ts', isHeld)
    this.deadlines = new Deadlines(() => this.#nowMs)
    this.reader = new LargeBodyReader({ deadlines: this.deadlines, onFault: detail => faults.push(detail) })
  }

  read(body: Buffer, name: string, throwIfGone = (): void => {}): Promise<unknown> {
    return codeOf(this.reader.read(body, { name, throwIfGone }))
  }

  pass(ms: number): void {
    this.#nowMs += ms
    this.deadlines.fireDue()
  }

  [Symbol.dispose](): void {
    this.reader.close()
    this.threads[Symbol.dispose]()
  }
}

const soon = (read: Promise<unknown>): Promise<unknown> => Promise.race([read, Bun.sleep(60_000).then(() => 'waits')])

const isPrompts = ({ readsDense }: LargeBodySetup): boolean => !readsDense
const readsDense = (setup: LargeBodySetup): boolean => setup.readsDense

test('a body that waits too long leaves the queue, its memory is free, and no thread reads it', async () => {
  using held = new HeldReader(isPrompts)
  const memory: WeakRef<Buffer>[] = []
  const readAndForget = (name: string): Promise<unknown> => {
    const received = body()
    memory.push(new WeakRef(received))
    return held.read(received, name)
  }
  const running = held.read(body(), 'first')
  const waiting = ['first', 'second', 'second', 'third'].map(readAndForget)
  held.pass(bounds.bodyWorkerMsMax)
  expect(await running).toBe('overloaded')
  expect(await Promise.all(waiting)).toEqual(Array(4).fill('overloaded'))
  expect(held.deadlines.size).toBe(0)
  const isFree = (): boolean => {
    Bun.gc(true)
    return memory.every(ref => ref.deref() === undefined)
  }
  await until(isFree, 'the bodies are free')
  const next = held.read(body(), 'fourth')
  held.threads.release()
  expect(await next).toBe('read')
  expect(held.threads.requests).toHaveLength(2) // the one that ran, and the next
})

test('a body whose caller leaves while it waits leaves the queue at once', async () => {
  using held = new HeldReader(isPrompts)
  const running = held.read(body(), 'first')
  const received = body()
  const gone = new Error('gone')
  let isGone = false
  const waiting = held.read(received, 'second', () => {
    if (isGone) throw gone
  })
  held.pass(1_000)
  isGone = true
  held.pass(1_000)
  expect(await soon(waiting)).toBe(gone)
  held.threads.release()
  expect(await running).toBe('read')
  expect(await held.read(body(), 'third')).toBe('read')
  expect([held.threads.requests.length, received.length]).toEqual([2, text.length])
})

test('a body that is late while it is read still counts for its account', async () => {
  using held = new HeldReader(isPrompts)
  const late = held.read(bodyOf(bounds.promptBytesMax / 2), 'first')
  held.pass(bounds.bodyWorkerMsMax)
  expect(await late).toBe('overloaded')
  const [again, other] = [held.read(body(), 'first'), held.read(body(), 'second')]
  const timers = spyOn(globalThis, 'setTimeout')
  try {
    held.threads.release()
    expect(await other).toBe('read')
    const longestMs = Math.max(...timers.mock.calls.map(([, ms]) => Number(ms ?? 0)).filter(ms => ms < 1_000))
    expect(longestMs).toBeGreaterThan(4)
  } finally {
    timers.mockRestore()
  }
  expect(await again).toBe('read')
})
