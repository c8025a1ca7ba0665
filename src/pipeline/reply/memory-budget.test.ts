// The memory of all answers together is bounded, and one answer can always be read further.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bounds } from '../../base/bounds.ts'
import { Stop } from '../../base/stop.ts'
import { AnswerMemory } from './memory-budget.ts'

const MIB = 1024 * 1024
const stop = () => new Stop<Error>()

/** Whether the answer may be read further now. */
const isReadable = (room: Promise<void> | undefined): boolean => room === undefined

describe('AnswerMemory', () => {
  test('a small answer is not counted and never waits', () => {
    const memory = new AnswerMemory(MIB)
    const [small, large] = [memory.open(), memory.open()]
    large.read(5 * MIB)
    small.read(bounds.answerUncountedBytesMax)
    expect(memory.bytes).toBe(5 * MIB)
    expect(isReadable(small.room(stop()))).toBe(true)
  })

  test('over the budget one answer is read further, and the next ones when it has finished', async () => {
    const memory = new AnswerMemory(4 * MIB)
    const leases = [memory.open(), memory.open(), memory.open()]
    for (const lease of leases) lease.read(2 * MIB)
    const rooms = leases.map(lease => lease.room(stop()))
    expect(rooms.map(isReadable)).toEqual([true, false, false])
    expect(isReadable(leases[0]!.room(stop()))).toBe(true)
    leases[0]!.close()
    await rooms[1]
    await rooms[2]
    expect(memory.bytes).toBe(4 * MIB)
  })

  test('when that answer has finished and there is still no room, only the next one is read further', async () => {
    const memory = new AnswerMemory(MIB)
    const leases = [memory.open(), memory.open(), memory.open()]
    for (const lease of leases) lease.read(8 * MIB)
    const rooms = leases.map(lease => lease.room(stop()))
    let third = false
    void rooms[2]!.then(() => (third = true))
    leases[0]!.close()
    await rooms[1]
    expect(third).toBe(false)
    leases[1]!.close()
    await rooms[2]
    leases[2]!.close()
    expect(memory.bytes).toBe(0)
  })

  test('a stopped call no longer waits and is removed', async () => {
    const memory = new AnswerMemory(MIB)
    const [first, second, third] = [memory.open(), memory.open(), memory.open()]
    for (const lease of [first, second, third]) lease.read(2 * MIB)
    const ended = stop()
    expect(isReadable(first.room(stop()))).toBe(true)
    const [stopped, waits] = [second.room(ended), third.room(stop())]
    ended.stop(new Error('over'))
    await stopped
    second.close()
    first.close()
    await waits
  })

  test('an answer that ends while it waits is not the one that is read further', async () => {
    const memory = new AnswerMemory(MIB)
    const [first, ended, third, fourth] = [memory.open(), memory.open(), memory.open(), memory.open()]
    for (const lease of [first, ended, third, fourth]) lease.read(2 * MIB)
    expect(isReadable(first.room(stop()))).toBe(true)
    const rooms = [ended, third, fourth].map(lease => lease.room(stop()))
    expect(rooms.some(isReadable)).toBe(false)
    ended.close()
    first.close()
    await rooms[1]
    third.close()
    await rooms[2]
  })

  test('whatever calls do, the memory stays within the budget plus the largest answer', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 16 }), async (answers, max) => {
        const memory = new AnswerMemory(max * MIB)
        let maxBytes = 0
        // All calls read their answers at the same time, in steps of half a MiB.
        const read = async (halves: number): Promise<void> => {
          const lease = memory.open()
          for (let step = 1; step <= halves; step++) {
            await lease.room(stop())
            lease.read((step * MIB) / 2)
            maxBytes = Math.max(maxBytes, memory.bytes)
            await Promise.resolve()
          }
          lease.close()
        }
        await Promise.all(answers.map(read))
        expect(memory.bytes).toBe(0)
        // Each call may have read one step before it was counted.
        const largest = Math.max(...answers) * (MIB / 2)
        expect(maxBytes).toBeLessThanOrEqual(max * MIB + largest + answers.length * MIB)
      }),
      { numRuns: 200 },
    )
  })
})
