// The memory of all answers together is bounded, and one answer can always go on.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bounds } from '../../base/bounds.ts'
import { Stop } from '../../base/stop.ts'
import { AnswerMemory } from './memory-budget.ts'

const MIB = 1024 * 1024
const stop = () => new Stop<Error>()

/** Whether the answer may be read further now. */
const goesOn = (room: Promise<void> | undefined): boolean => room === undefined

describe('AnswerMemory', () => {
  test('a small answer is not counted and never waits', () => {
    const memory = new AnswerMemory(MIB)
    const [small, large] = [memory.open(), memory.open()]
    large.read(5 * MIB)
    small.read(bounds.answerUncountedBytesMax)
    expect(memory.bytes).toBe(5 * MIB)
    expect(goesOn(small.room(stop()))).toBe(true)
  })

  test('over the budget one answer goes on, and the next one when it has finished', async () => {
    const memory = new AnswerMemory(4 * MIB)
    const leases = [memory.open(), memory.open(), memory.open()]
    for (const lease of leases) lease.read(2 * MIB)
    const rooms = leases.map(lease => lease.room(stop()))
    expect(rooms.map(goesOn)).toEqual([true, false, false])
    expect(goesOn(leases[0]!.room(stop()))).toBe(true)
    leases[0]!.close()
    await rooms[1]
    await rooms[2]
    expect(memory.bytes).toBe(4 * MIB)
  })

  test('when that answer has finished and there is still no room, the next one goes on', async () => {
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
    expect(goesOn(first.room(stop()))).toBe(true)
    const [stopped, waits] = [second.room(ended), third.room(stop())]
    ended.stop(new Error('over'))
    await stopped
    second.close()
    first.close()
    await waits
  })

  test('whatever calls do, the memory stays within the budget plus the largest answer', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 16 }), async (answers, max) => {
        const memory = new AnswerMemory(max * MIB)
        let most = 0
        // All calls read their answers at the same time, in steps of half a MiB.
        const read = async (halves: number): Promise<void> => {
          const lease = memory.open()
          for (let at = 1; at <= halves; at++) {
            await lease.room(stop())
            lease.read((at * MIB) / 2)
            most = Math.max(most, memory.bytes)
            await Promise.resolve()
          }
          lease.close()
        }
        await Promise.all(answers.map(read))
        expect(memory.bytes).toBe(0)
        // Each call may have read one step before it was counted.
        const largest = Math.max(...answers) * (MIB / 2)
        expect(most).toBeLessThanOrEqual(max * MIB + largest + answers.length * MIB)
      }),
      { numRuns: 200 },
    )
  })
})
