// The fair queue: owners take turns, slots are limited, and every slot is released.

import { expect, test } from 'bun:test'
import type { SlotCooldown } from './fair-queue.ts'
import { FairQueue } from './fair-queue.ts'

const wanted = (): void => {}

/** Jobs that the test ends, in the order in which they started. */
function workshop(turns: FairQueue) {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const add = (owner: string, name: string, rest?: SlotCooldown): Promise<string> =>
    turns.run(owner, {
      throwIfCancelled: wanted,
      run: () => {
        begun.push(name)
        return new Promise<string>(resolve => ends.set(name, () => resolve(name)))
      },
      ...(rest && { cooldownAfter: () => rest }),
    })
  const end = async (name: string): Promise<void> => {
    ends.get(name)!()
    await Bun.sleep(0)
  }
  return { begun, add, end }
}

test('owners take turns, however many jobs one of them has', async () => {
  const { begun, add, end } = workshop(new FairQueue(1, 1))
  for (let at = 0; at < 4; at++) void add('a', `a${at}`)
  void add('b', 'b0')
  void add('c', 'c0')
  for (const name of ['a0', 'b0', 'a1', 'c0', 'a2']) await end(name)
  expect(begun).toEqual(['a0', 'b0', 'a1', 'c0', 'a2', 'a3'])
})

test('an owner takes no more than its slots, and leaves the others to other owners', async () => {
  const { begun, add, end } = workshop(new FairQueue(3, 1))
  for (const name of ['a0', 'a1', 'b0', 'c0', 'd0']) void add(name[0]!, name)
  expect(begun).toEqual(['a0', 'b0', 'c0'])
  await end('b0')
  expect(begun).toEqual(['a0', 'b0', 'c0', 'd0'])
  await end('a0')
  expect(begun.at(-1)).toBe('a1')
})

test('a failed or cancelled job releases its slot', async () => {
  const turns = new FairQueue(1, 1)
  const fails = turns.run('a', { throwIfCancelled: wanted, run: () => Promise.reject(new Error('it fails')) })
  const unwanted = turns.run('a', {
    throwIfCancelled: () => {
      throw new Error('gone')
    },
    run: () => Promise.resolve('never'),
  })
  expect(await Promise.allSettled([fails, unwanted])).toEqual([
    { status: 'rejected', reason: new Error('it fails') },
    { status: 'rejected', reason: new Error('gone') },
  ])
  expect(await turns.run('a', { throwIfCancelled: wanted, run: () => Promise.resolve('done') })).toBe('done')
  expect(turns.waiting).toBe(0)
})

test('after an expensive job its owner waits, and others do not', async () => {
  const { begun, add, end } = workshop(new FairQueue(1, 1))
  const first = add('a', 'a0', { ownerMs: 60, totalMs: 0 })
  void add('a', 'a1')
  void add('b', 'b0')
  await end('a0')
  expect(await first).toBe('a0')
  expect(begun).toEqual(['a0', 'b0'])
  await end('b0')
  while (begun.length < 3) await Bun.sleep(5)
  expect(begun.at(-1)).toBe('a1')
})
