// Tests the fair queue: owners take turns, slots are limited, and every slot is released.

import { expect, test } from 'bun:test'
import type { SlotCooldown } from './fair-queue.ts'
import { FairQueue } from './fair-queue.ts'

/** Adds jobs that the test ends, and lists the jobs in the order in which they started. */
function startJobs(queue: FairQueue) {
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const add = (owner: string, name: string, cooldown?: SlotCooldown, signal?: AbortSignal): Promise<string> =>
    queue.run(owner, {
      run: () => {
        started.push(name)
        return new Promise<string>(resolve => ends.set(name, () => resolve(name)))
      },
      ...(cooldown && { cooldownAfter: () => cooldown }),
      signal,
    })
  const end = async (name: string): Promise<void> => {
    ends.get(name)!()
    await Bun.sleep(0)
  }
  return { started, add, end }
}

test('owners take turns, however many jobs one of them has', async () => {
  const { started, add, end } = startJobs(new FairQueue(1, 1))
  for (let index = 0; index < 4; index++) void add('a', `a${index}`)
  void add('b', 'b0')
  void add('c', 'c0')
  for (const name of ['a0', 'b0', 'a1', 'c0', 'a2']) await end(name)
  expect(started).toEqual(['a0', 'b0', 'a1', 'c0', 'a2', 'a3'])
})

test('an owner uses no more than its slots, and other owners use the rest', async () => {
  const { started, add, end } = startJobs(new FairQueue(3, 1))
  for (const name of ['a0', 'a1', 'b0', 'c0', 'd0']) void add(name[0]!, name)
  expect(started).toEqual(['a0', 'b0', 'c0'])
  await end('b0')
  expect(started).toEqual(['a0', 'b0', 'c0', 'd0'])
  await end('a0')
  expect(started.at(-1)).toBe('a1')
})

test('a failed job releases its slot', async () => {
  const queue = new FairQueue(1, 1)
  const fails = queue.run('a', { run: () => Promise.reject(new Error('it fails')) })
  const throws = queue.run('a', {
    run: () => {
      throw new Error('it throws')
    },
  })
  expect(await Promise.allSettled([fails, throws])).toEqual([
    { status: 'rejected', reason: new Error('it fails') },
    { status: 'rejected', reason: new Error('it throws') },
  ])
  expect(await queue.run('a', { run: () => Promise.resolve('done') })).toBe('done')
  expect(queue.waiting).toBe(0)
})

/** A signal that counts its listeners. */
function countedSignal() {
  const controller = new AbortController()
  const { signal } = controller
  let listeners = 0
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)]
  signal.addEventListener = (...parts: Parameters<typeof add>) => {
    listeners++
    add(...parts)
  }
  signal.removeEventListener = (...parts: Parameters<typeof remove>) => {
    listeners--
    remove(...parts)
  }
  return { signal, abort: (fault: Error) => controller.abort(fault), listeners: () => listeners }
}

const reasonOf = (job: Promise<unknown>): Promise<unknown> =>
  job.then(
    () => 'done',
    fault => fault,
  )

test('a signal removes its jobs at once while they wait, and the jobs of others keep their turns', async () => {
  const queue = new FairQueue(1, 1)
  const { started, add, end } = startJobs(queue)
  const left = countedSignal()
  void add('a', 'a0')
  const leaving = ['b0', 'b1', 'c0'].map(name => reasonOf(add(name[0]!, name, undefined, left.signal)))
  for (const name of ['a1', 'c1', 'd0']) void add(name[0]!, name)
  const gone = new Error('gone')
  left.abort(gone)
  expect(queue.waiting).toBe(3)
  expect(await Promise.all(leaving)).toEqual([gone, gone, gone])
  for (const name of ['a0', 'c1', 'a1', 'd0']) await end(name)
  expect(started).toEqual(['a0', 'c1', 'a1', 'd0'])
})

test('a job whose signal was aborted before does not start', async () => {
  const { started, add } = startJobs(new FairQueue(1, 1))
  const gone = new Error('gone')
  expect(await reasonOf(add('a', 'a0', undefined, AbortSignal.abort(gone)))).toBe(gone)
  void add('a', 'a1')
  expect(started).toEqual(['a1'])
})

test('a signal does not affect a job that runs: it keeps its slot, and its owner waits after it', async () => {
  const { started, add, end } = startJobs(new FairQueue(1, 1))
  const left = countedSignal()
  const running = add('a', 'a0', { ownerMs: 60, totalMs: 0 }, left.signal)
  void add('a', 'a1')
  void add('b', 'b0')
  expect(left.listeners()).toBe(0)
  left.abort(new Error('gone'))
  await Bun.sleep(0)
  expect(started).toEqual(['a0'])
  await end('a0')
  expect(await running).toBe('a0')
  expect(started).toEqual(['a0', 'b0'])
})

test('after an expensive job its owner waits, and others do not', async () => {
  const { started, add, end } = startJobs(new FairQueue(1, 1))
  const first = add('a', 'a0', { ownerMs: 60, totalMs: 0 })
  void add('a', 'a1')
  void add('b', 'b0')
  await end('a0')
  expect(await first).toBe('a0')
  expect(started).toEqual(['a0', 'b0'])
  await end('b0')
  while (started.length < 3) await Bun.sleep(5)
  expect(started.at(-1)).toBe('a1')
})
