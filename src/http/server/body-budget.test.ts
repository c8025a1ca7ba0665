// Bodies that are being received: the budget of each class, which body is dropped, and that nothing is counted twice.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Refusal } from '../../base/errors.ts'
import type { BodyBudgetBounds, BodyClass, BodyLease } from './body-budget.ts'
import { BodyBudget, buildBodyBudgetBounds } from './body-budget.ts'

const small: BodyBudgetBounds = { ownBodiesMax: 3, ownBytesMax: 100, bodiesMax: 6, bytesMax: 200 }
const open = (limits = small): BodyBudget => new BodyBudget({ stranger: limits, person: limits, caller: limits })

interface Watched {
  readonly lease: BodyLease
  /** Why the body was dropped. */
  code?: string
}

function enter(inflow: BodyBudget, name: string, of: BodyClass = 'caller'): Watched {
  const watched: Watched = { lease: inflow.open({ class: of, name }) }
  watched.lease.onDrop(refusal => (watched.code = refusal.code))
  return watched
}

describe('of one owner', () => {
  test('one body too many drops the one that has waited longest for a byte, not the newest', () => {
    const inflow = open()
    const [first, second, third] = [enter(inflow, 'a'), enter(inflow, 'a'), enter(inflow, 'a')]
    first.lease.addBytes(1)
    const fourth = enter(inflow, 'a')
    expect([first, second, third, fourth].map(({ code }) => code)).toEqual([
      undefined,
      'concurrency_exceeded',
      undefined,
      undefined,
    ])
    expect(inflow.countsOf('caller')).toEqual({ bodies: 3, bytes: 1 })
  })

  test('too many bytes of one owner drop only its own bodies', () => {
    const inflow = open()
    const [other, stalled, going] = [enter(inflow, 'b'), enter(inflow, 'a'), enter(inflow, 'a')]
    other.lease.addBytes(90)
    stalled.lease.addBytes(60)
    going.lease.addBytes(60)
    expect([other.code, stalled.code, going.code]).toEqual([undefined, 'concurrency_exceeded', undefined])
    expect(inflow.countsOf('caller')).toEqual({ bodies: 2, bytes: 150 })
  })

  test('a body that is larger than the whole budget is dropped itself', () => {
    const only = enter(open(), 'a')
    expect(() => only.lease.addBytes(101)).toThrow(Refusal)
    expect(() => only.lease.addBytes(1)).toThrow(Refusal)
    expect(only.code).toBe('concurrency_exceeded')
  })
})

describe('of a class', () => {
  test('when the budget is used up, the owner with the most loses a body', () => {
    const inflow = open({ ...small, ownBytesMax: 150 })
    const [greedy, modest, latest] = [enter(inflow, 'a'), enter(inflow, 'b'), enter(inflow, 'c')]
    greedy.lease.addBytes(140)
    modest.lease.addBytes(50)
    latest.lease.addBytes(20)
    expect([greedy.code, modest.code, latest.code]).toEqual(['overloaded', undefined, undefined])
  })

  test('anonymous clients take nothing from callers', () => {
    const inflow = open()
    for (let at = 0; at < 100; at++) enter(inflow, `network ${at}`, 'stranger').lease.addBytes(1)
    expect(inflow.countsOf('stranger').bodies).toBe(small.bodiesMax)
    expect(inflow.countsOf('caller')).toEqual({ bodies: 0, bytes: 0 })
    const caller = enter(inflow, 'a')
    caller.lease.addBytes(100)
    expect(caller.code).toBeUndefined()
  })
})

test('the sums always equal the open bodies, and stay within their bounds', () => {
  const step = fc.record({
    owner: fc.constantFrom('a', 'b', 'c'),
    bytes: fc.nat(120),
    pick: fc.nat(20),
    does: fc.constantFrom('enter', 'hold', 'leave'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const inflow = open()
      const all: Watched[] = []
      for (const { owner, bytes, pick, does } of steps) {
        const one = all[pick % (all.length || 1)]
        if (does === 'enter' || one === undefined) all.push(enter(inflow, owner))
        else if (does === 'leave') one.lease.release()
        else {
          try {
            one.lease.addBytes(bytes)
          } catch (fault) {
            expect(fault).toBeInstanceOf(Refusal)
          }
        }
        const { bodies, bytes: held } = inflow.countsOf('caller')
        expect(bodies).toBeWithin(0, small.bodiesMax + 1)
        expect(held).toBeWithin(0, small.bytesMax + 1)
      }
      for (const { lease } of all) lease.release()
      expect(inflow.countsOf('caller')).toEqual({ bodies: 0, bytes: 0 })
    }),
  )
})

test('on the smallest machine a body of the largest size still fits, and anonymous clients have little', () => {
  const { caller, stranger } = buildBodyBudgetBounds(64 * 1024 * 1024)
  expect(caller.ownBytesMax).toBeGreaterThanOrEqual(32 * 1024 * 1024)
  expect(stranger.bytesMax).toBeLessThanOrEqual(8 * 1024 * 1024)
})
