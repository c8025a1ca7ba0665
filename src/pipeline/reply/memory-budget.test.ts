// What all answers together hold is bounded, and somebody always goes on.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bounds } from '../../base/bounds.ts'
import { Stop } from '../../base/stop.ts'
import { AnswerMemory } from './memory-budget.ts'

const MIB = 1024 * 1024
const stop = () => new Stop<Error>()

/** Whether it may read on now. */
const goesOn = (room: Promise<void> | undefined): boolean => room === undefined

describe('AnswerMemory', () => {
  test('little is not counted, and never waits', () => {
    const memory = new AnswerMemory(MIB)
    const [small, large] = [memory.open(), memory.open()]
    large.read(5 * MIB)
    small.read(bounds.answerUncountedBytesMax)
    expect(memory.bytes).toBe(5 * MIB)
    expect(goesOn(small.room(stop()))).toBe(true)
  })

  test('beyond the bound one goes on, and the next when it is done', async () => {
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

  test('when the one that went on is done and there is still no room, the next goes on', async () => {
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

  test('one that is stopped waits no longer, and is forgotten', async () => {
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

  test('whatever calls do, what is held stays within the bound and the largest of one', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 16 }), async (answers, max) => {
        const memory = new AnswerMemory(max * MIB)
        let most = 0
        // Each reads its answer in steps of a half MiB, all at a time.
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
        // Each may have begun with one step before it was counted.
        const largest = Math.max(...answers) * (MIB / 2)
        expect(most).toBeLessThanOrEqual(max * MIB + largest + answers.length * MIB)
      }),
      { numRuns: 200 },
    )
  })
})
