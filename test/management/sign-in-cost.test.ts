// Signing in at its real cost: it takes as long for any address, and a flood of attempts takes only a few slots at a
// time while calls go on.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { passwordCost } from '../../src/store/people/password-hash.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import { askAs } from '../support/management.ts'
import { goodPassword, setUpOwner, signIn } from '../support/people.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHarness({ world: { passwordCost }, env: { WEIR_TRUSTED_PROXIES: '127.0.0.1' } })
  await setUpOwner(harness)
})
afterAll(() => harness.stop())

test('sign-in takes about as long for a known address as for an unknown one', async () => {
  const durations = { 'owner@example.com': [] as number[], 'nobody@example.com': [] as number[] }
  for (let at = 0; at < 7; at++) {
    for (const [email, times] of Object.entries(durations)) {
      const beganMs = performance.now()
      expect((await signIn(harness, { email, password: 'not the password' })).status).toBe(401)
      times.push(performance.now() - beganMs)
    }
  }
  // Without the hash it would be fifty times as fast. A busy machine only adds to a time, so the least is compared.
  const [knownMs, unknownMs] = Object.values(durations).map(times => Math.min(...times))
  expect(knownMs! / unknownMs!).toBeGreaterThan(1 / 4)
  expect(knownMs! / unknownMs!).toBeLessThan(4)
})

test('of hundreds of attempts at once only a few are tried, and no call fails', async () => {
  const key = await harness.key()
  const asAnonymous = askAs(harness, undefined)
  const flood = Promise.all(
    Array.from({ length: 300 }, (_, at) =>
      asAnonymous(
        'POST',
        'auth/sign-in',
        { email: `u${at}@example.com`, password: goodPassword },
        {
          'x-forwarded-for': `10.${at >> 8}.${at & 255}.1`,
        },
      ),
    ),
  )
  let isOver = false
  void flood.then(() => (isOver = true))
  do {
    const { status } = await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })
    expect(status).toBe(200)
  } while (!isOver)
  const codes = (await flood).map(({ error }) => error.code)
  const [tried, away] = ['sign_in_failed', 'overloaded'].map(code => codes.filter(one => one === code).length)
  expect(tried! + away!).toBe(300)
  expect(away!).toBeGreaterThan(100)
})
