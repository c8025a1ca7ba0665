// Tests the limits of sign-in attempts, and that nobody can lock out another person.

import { describe, expect, test } from 'bun:test'
import { bounds } from '../base/bounds.ts'
import { rateOf } from '../base/collections/gcra.ts'
import { AttemptCounter } from './attempt-limits.ts'
import { SignInLimits } from './sign-in-limits.ts'

function limitsAt(nowMs = 1_000_000) {
  const clock = { nowMs }
  const limits = new SignInLimits({ nowMs: () => clock.nowMs })
  const trySignIn = (name: string, network: string, isKnown = false): Promise<(() => void) | undefined> =>
    limits.countOrRefuse({ name, network, isKnown }).catch(() => undefined)
  const count = async (times: number, attempt: () => Promise<unknown>): Promise<number> =>
    (await Promise.all(Array.from({ length: times }, attempt))).filter(result => result !== undefined).length
  return { clock, limits, trySignIn, count }
}

describe('attempts are counted', () => {
  test('for one name from one address, and the limit refills', async () => {
    const { clock, trySignIn, count } = limitsAt()
    expect(await count(30, () => trySignIn('a', 'here'))).toBe(10)
    clock.nowMs += 60_000
    expect(await count(30, () => trySignIn('a', 'here'))).toBe(1)
    clock.nowMs += 600_000
    expect(await count(30, () => trySignIn('a', 'here'))).toBe(10)
  })

  test('for one address, whatever names it tries', async () => {
    const { trySignIn, count } = limitsAt()
    let name = 0
    expect(await count(100, () => trySignIn(`name ${name++}`, 'here'))).toBe(50)
  })

  test('for the wider network of many addresses', async () => {
    const { limits, count } = limitsAt()
    let attempt = 0
    const tryNext = (): Promise<unknown> => {
      const at = attempt++
      const place = { network: `network ${at % 100}`, site: 'here' }
      return limits.countOrRefuse({ name: `name ${at}`, ...place, isKnown: false }).catch(() => undefined)
    }
    expect(await count(1_000, tryNext)).toBe(500)
  })

  test('for one name, from any number of addresses', async () => {
    const { trySignIn, count } = limitsAt()
    let network = 0
    expect(await count(1_000, () => trySignIn('a', `place ${network++}`))).toBe(30)
  })

  test('only if they fail', async () => {
    const { trySignIn, count } = limitsAt()
    for (let index = 0; index < 1_000; index++) (await trySignIn('a', 'here'))!()
    expect(await count(30, () => trySignIn('a', 'here'))).toBe(10)
  })
})

test('a person at a known address is not locked out by attempts from other addresses', async () => {
  const { trySignIn, count } = limitsAt()
  let network = 0
  expect(await count(10_000, () => trySignIn('a', `place ${network++}`))).toBe(30)
  expect(await trySignIn('a', 'home', false)).toBeUndefined()
  expect(await trySignIn('a', 'home', true)).toBeDefined()
  expect(await count(30, () => trySignIn('a', 'home', true))).toBe(9)
})

test('a person at a known address is not locked out by attempts for other names from the same address', async () => {
  const { trySignIn, count } = limitsAt()
  let name = 0
  expect(await count(100, () => trySignIn(`name ${name++}`, 'home'))).toBe(50)
  expect(await trySignIn('a', 'home', false)).toBeUndefined()
  expect(await count(30, () => trySignIn('a', 'home', true))).toBe(10)
})

test('known names from one address have a limit together, above which all names are refused', async () => {
  const { clock, trySignIn, count } = limitsAt()
  let attempt = 0
  expect(await count(4_000, () => trySignIn(`name ${Math.floor(attempt++ / 20)}`, 'office', true))).toBe(200)
  expect([await trySignIn('boss', 'office', true), await trySignIn('nobody', 'office', false)]).toEqual([
    undefined,
    undefined,
  ])
  expect(await trySignIn('boss', 'home', true)).toBeDefined()
  clock.nowMs += 3_000
  expect(await count(10, () => trySignIn('boss', 'office', true))).toBe(1)
  for (let index = 0; index < 1_000; index++) (await trySignIn('right', 'elsewhere', true))!()
})

test('attempts are remembered for a bounded number of names, the latest ones', () => {
  const counter = new AttemptCounter('x', rateOf(1, 60_000), { nowMs: () => 1_000_000 })
  for (let index = 0; index <= bounds.attemptCountersMax; index++) counter.count(`name ${index}`)
  expect(counter.waitMs('name 0')).toBe(0)
  expect(counter.waitMs('name 1')).toBe(60_000)
})
