// Whoever floods the sign-in takes a few places at a time, and calls go on.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { passwordCost } from '../../src/store/hash-password.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import { askAs } from '../support/management.ts'
import { goodPassword, setUpOwner } from '../support/people.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHarness({ world: { passwordCost }, env: { WEIR_TRUSTED_PROXIES: '127.0.0.1' } })
})
afterAll(() => harness.stop())

test('hundreds of tries at once are turned away but for a few, and no call fails', async () => {
  await setUpOwner(harness)
  const key = await harness.key()
  const nobody = askAs(harness, undefined)
  const flood = Promise.all(
    Array.from({ length: 300 }, (_, at) =>
      nobody('POST', 'auth/sign-in', { email: `u${at}@example.com`, password: goodPassword }, {
        'x-forwarded-for': `10.${at >> 8}.${at & 255}.1`,
      }),
    ),
  )
  let [isOver, calls] = [false, 0]
  void flood.then(() => (isOver = true))
  do {
    const { status } = await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })
    expect(status).toBe(200)
    calls++
  } while (!isOver)
  const codes = (await flood).map(({ error }) => error.code)
  const [tried, away] = ['sign_in_failed', 'overloaded'].map(code => codes.filter(one => one === code).length)
  expect(tried! + away!).toBe(300)
  expect(away!).toBeGreaterThan(100)
  expect(calls).toBeGreaterThan(5)
})
