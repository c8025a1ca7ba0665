// Signing in at its real cost: it does the same work for any address, and a flood of attempts takes only a few slots at a
// time while calls go on.

import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
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

test('sign-in takes as long for a known address as for an unknown one: the time of one hash, fifty times all the rest', async () => {
  const [hash, verify] = [spyOn(Bun.password, 'hash'), spyOn(Bun.password, 'verify')]
  const attempt = async (email: string): Promise<unknown> => {
    hash.mockClear()
    verify.mockClear()
    const { status } = await signIn(harness, { email, password: 'not the password' })
    return [status, hash.mock.calls.length, verify.mock.calls.map(([, compared]) => String(compared).split('$')[3])]
  }
  try {
    await attempt('first@example.com') // the first attempt also makes the hash that is compared for unknown addresses
    const { memoryKib, passes } = passwordCost
    for (const email of ['owner@example.com', 'nobody@example.com']) {
      expect([email, await attempt(email)]).toEqual([email, [401, 0, [`m=${memoryKib},t=${passes},p=1`]]])
    }
  } finally {
    hash.mockRestore()
    verify.mockRestore()
  }
})

test('of hundreds of attempts at once only a few are tried, and no call fails', async () => {
  const key = await harness.key({ qpm: 100_000 }) // nobody knows how many calls are made meanwhile
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
