// Tests the fair queue: owners take turns, slots are limited, and every slot is released.

import { expect, test } from 'bun:test'
import type { SlotCooldown } from './fair-queue.ts'
import { FairQueue } from './fair-queue.ts'

const notCancelled = (): void => {}

/** Adds jobs that the test ends, and lists the jobs in the order in which they started. */
function startJobs(queue: FairQueue) {
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const add = (owner: string, name: string, cooldown?: SlotCooldown): Promise<string> =>
    queue.run(owner, {
      throwIfCancelled: notCancelled,
      run: () => {
        started.push(name)
        return new Promise<string>(resolve => ends.set(name, () => resolve(name)))
      },
      ...(cooldown && { cooldownAfter: () => cooldown }),
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

test('a failed or cancelled job releases its slot', async () => {
  const queue = new FairQueue(1, 1)
  const fails = queue.run('a', { throwIfCancelled: notCancelled, run: () => Promise.reject(new Error('it fails')) })
  const cancelled = queue.run('a', {
    throwIfCancelled: () => {
      throw new Error('gone')
    },
    run: () => Promise.resolve('never'),
  })
  expect(await Promise.allSettled([fails, cancelled])).toEqual([
    { status: 'rejected', reason: new Error('it fails') },
    { status: 'rejected', reason: new Error('gone') },
  ])
  expect(await queue.run('a', { throwIfCancelled: notCancelled, run: () => Promise.resolve('done') })).toBe('done')
  expect(queue.waiting).toBe(0)
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
