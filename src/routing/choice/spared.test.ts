// What becomes of a model when many of its channels are broken: those that are well answer, then the next model, and
// only where all that are well have all they take, some of the broken ones are asked.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chanceOf } from '../../../test/support/chance.ts'
import { Health } from '../health/health.ts'
import type { Choice, Choosing } from './choose.ts'
import { choose } from './choose.ts'
import type { Option, Seat } from './option.ts'

type Tries = Extract<Choice, { kind: 'try' }>

const seatOf = (id: string): Seat => {
  return { id, priority: 0, weight: 1, health: new Health({ caps: {}, chance: () => 0.5 }) }
}

const optionOf = (name: string, seats: readonly Seat[]): Option => {
  return { name, priority: 0, weight: 1, translates: false, price: 1, seats }
}

const asked = (options: readonly Option[]): Choosing => {
  return { options, policy: 'balanced', tried: [], tokens: 1, nowMs: 0, chance: chanceOf(5) }
}

const breakAt = ({ health }: Seat, nowMs: number): void => {
  for (let time = 0; time < 5; time++) health.begin(1, nowMs).end({ verdict: 'broken' }, nowMs)
}

test('no more than half of a model is held closed by breakers while any of it is well', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 12 }), fc.nat(11), (size, broken) => {
      const seats = Array.from({ length: size }, (_, at) => seatOf(`s${at}`))
      const dead = seats.slice(0, Math.min(broken, size - 1))
      for (const [at, seat] of dead.entries()) breakAt(seat, at)
      const chooses = (): Choice => choose({ ...asked([optionOf('p/m', seats)]), nowMs: 50 })
      const well = seats.slice(dead.length)
      // As long as one that is well can take it, that one does.
      for (let time = 0; time < 10; time++) expect(well).toContain((chooses() as Tries).seat)
      for (const { health } of well) {
        health.caps = { concurrency: 1 }
        health.begin(1, 40)
      }
      // Those that open first count as open then.
      const spared = dead.slice(0, Math.max(0, dead.length - Math.floor(size / 2)))
      for (let time = 0; time < 10; time++) {
        if (spared.length === 0) expect(chooses()).toEqual({ kind: 'wait' })
        else expect(spared).toContain((chooses() as Tries).seat)
      }
    }),
  )
})

test.each([1, 2, 5])('a model whose %d channels are all broken is passed over for the next', size => {
  const dead = Array.from({ length: size }, (_, at) => seatOf(`dead${at}`))
  for (const seat of dead) breakAt(seat, 0)
  const [first, then] = [optionOf('dead/m', dead), { ...optionOf('well/m', [seatOf('well')]), priority: 1 }]
  for (let time = 0; time < 50; time++) {
    expect(choose({ ...asked([first, then]), nowMs: 50 })).toMatchObject({ kind: 'try', seat: { id: 'well' } })
  }
  // Alone it is tried all the same.
  expect(choose({ ...asked([first]), nowMs: 50 })).toMatchObject({ kind: 'try', why: 'nearest' })
})
