// Tests bodies that are being received: the budget of each class, which body is dropped, and that none is counted twice.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Refusal } from '../../base/errors.ts'
import type { BodyBudgetBounds, BodyClass, BodyLease } from './body-budget.ts'
import { BodyBudget, buildBodyBudgetBounds } from './body-budget.ts'

const small: BodyBudgetBounds = { ownBodiesMax: 3, ownBytesMax: 100, bodiesMax: 6, bytesMax: 200 }
const open = (limits = small): BodyBudget => new BodyBudget({ anonymous: limits, person: limits, caller: limits })

interface OpenBody {
  readonly lease: BodyLease
  /** Why the body was dropped. */
  code?: string
}

function openBody(budget: BodyBudget, name: string, bodyClass: BodyClass = 'caller'): OpenBody {
  const opened: OpenBody = { lease: budget.open({ class: bodyClass, name }) }
  opened.lease.onDrop(refusal => (opened.code = refusal.code))
  return opened
}

describe('the budget of one owner:', () => {
  test('one body too many drops the body that has waited longest for a byte, not the newest', () => {
    const budget = open()
    const [first, second, third] = [openBody(budget, 'a'), openBody(budget, 'a'), openBody(budget, 'a')]
    first.lease.addBytes(1)
    const fourth = openBody(budget, 'a')
    expect([first, second, third, fourth].map(({ code }) => code)).toEqual([
      undefined,
      'concurrency_exceeded',
      undefined,
      undefined,
    ])
    expect(budget.countsOf('caller')).toEqual({ bodies: 3, bytes: 1 })
  })

  test('too many bytes of one owner drop only its own bodies', () => {
    const budget = open()
    const [other, stalled, active] = [openBody(budget, 'b'), openBody(budget, 'a'), openBody(budget, 'a')]
    other.lease.addBytes(90)
    stalled.lease.addBytes(60)
    active.lease.addBytes(60)
    expect([other.code, stalled.code, active.code]).toEqual([undefined, 'concurrency_exceeded', undefined])
    expect(budget.countsOf('caller')).toEqual({ bodies: 2, bytes: 150 })
  })

  test('a body that is larger than the whole budget is dropped itself', () => {
    const only = openBody(open(), 'a')
    expect(() => only.lease.addBytes(101)).toThrow(Refusal)
    expect(() => only.lease.addBytes(1)).toThrow(Refusal)
    expect(only.code).toBe('concurrency_exceeded')
  })
})

describe('the budget of a class:', () => {
  test('when it is used up, the owner with the most bytes loses a body', () => {
    const budget = open({ ...small, ownBytesMax: 150 })
    const [largest, medium, latest] = [openBody(budget, 'a'), openBody(budget, 'b'), openBody(budget, 'c')]
    largest.lease.addBytes(140)
    medium.lease.addBytes(50)
    latest.lease.addBytes(20)
    expect([largest.code, medium.code, latest.code]).toEqual(['overloaded', undefined, undefined])
  })

  test('anonymous clients do not use the budget of callers', () => {
    const budget = open()
    for (let index = 0; index < 100; index++) openBody(budget, `network ${index}`, 'anonymous').lease.addBytes(1)
    expect(budget.countsOf('anonymous').bodies).toBe(small.bodiesMax)
    expect(budget.countsOf('caller')).toEqual({ bodies: 0, bytes: 0 })
    const caller = openBody(budget, 'a')
    caller.lease.addBytes(100)
    expect(caller.code).toBeUndefined()
  })
})

test('the sums always equal the open bodies, and stay within their bounds', () => {
  const step = fc.record({
    owner: fc.constantFrom('a', 'b', 'c'),
    bytes: fc.nat(120),
    pick: fc.nat(20),
    action: fc.constantFrom('enter', 'hold', 'leave'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const budget = open()
      const all: OpenBody[] = []
      for (const { owner, bytes, pick, action } of steps) {
        const picked = all[pick % (all.length || 1)]
        if (action === 'enter' || picked === undefined) all.push(openBody(budget, owner))
        else if (action === 'leave') picked.lease.release()
        else {
          try {
            picked.lease.addBytes(bytes)
          } catch (fault) {
            expect(fault).toBeInstanceOf(Refusal)
          }
        }
        const { bodies, bytes: held } = budget.countsOf('caller')
        expect(bodies).toBeWithin(0, small.bodiesMax + 1)
        expect(held).toBeWithin(0, small.bytesMax + 1)
      }
      for (const { lease } of all) lease.release()
      expect(budget.countsOf('caller')).toEqual({ bodies: 0, bytes: 0 })
    }),
  )
})

test('on the smallest machine a body of the largest size still fits, and anonymous clients have a small budget', () => {
  const { caller, anonymous } = buildBodyBudgetBounds(64 * 1024 * 1024)
  expect(caller.ownBytesMax).toBeGreaterThanOrEqual(32 * 1024 * 1024)
  expect(anonymous.bytesMax).toBeLessThanOrEqual(8 * 1024 * 1024)
})
