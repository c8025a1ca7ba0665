// The limits of sign-in attempts, and that nobody can lock out another person.

import { describe, expect, test } from 'bun:test'
import { bounds } from '../base/bounds.ts'
import { rateOf } from '../base/collections/gcra.ts'
import { AttemptCounter } from './attempt-limits.ts'
import { SignInLimits } from './sign-in-limits.ts'

function limitsAt(nowMs = 1_000_000) {
  const clock = { nowMs }
  const limits = new SignInLimits(() => clock.nowMs)
  const tries = (name: string, place: string, isKnown = false): (() => void) | undefined => {
    try {
      return limits.countOrRefuse({ name, network: place, isKnown })
    } catch {
      return undefined
    }
  }
  const count = (times: number, one: () => unknown): number =>
    Array.from({ length: times }, one).filter(went => went !== undefined).length
  return { clock, tries, count }
}

describe('attempts are counted', () => {
  test('for one name from one address, and the limit refills', () => {
    const { clock, tries, count } = limitsAt()
    expect(count(30, () => tries('a', 'here'))).toBe(10)
    clock.nowMs += 60_000
    expect(count(30, () => tries('a', 'here'))).toBe(1)
    clock.nowMs += 600_000
    expect(count(30, () => tries('a', 'here'))).toBe(10)
  })

  test('for one address, whatever names it tries', () => {
    const { tries, count } = limitsAt()
    let name = 0
    expect(count(100, () => tries(`name ${name++}`, 'here'))).toBe(50)
  })

  test('for one name, from any number of addresses', () => {
    const { tries, count } = limitsAt()
    let place = 0
    expect(count(1_000, () => tries('a', `place ${place++}`))).toBe(30)
  })

  test('not if they succeed', () => {
    const { tries, count } = limitsAt()
    for (let at = 0; at < 1_000; at++) tries('a', 'here')!()
    expect(count(30, () => tries('a', 'here'))).toBe(10)
  })
})

test('a person at a known address is not locked out by attempts from other addresses', () => {
  const { tries, count } = limitsAt()
  let place = 0
  expect(count(10_000, () => tries('a', `place ${place++}`))).toBe(30)
  expect(tries('a', 'home', false)).toBeUndefined()
  expect(tries('a', 'home', true)).toBeDefined()
  expect(count(30, () => tries('a', 'home', true))).toBe(9)
})

test('only the latest names are remembered', () => {
  const tries = new AttemptCounter(rateOf(1, 60_000), () => 1_000_000)
  for (let at = 0; at <= bounds.attemptCountersMax; at++) tries.count(`name ${at}`)
  expect(tries.waitMs('name 0')).toBe(0)
  expect(tries.waitMs('name 1')).toBe(60_000)
})
