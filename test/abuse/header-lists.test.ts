// Headers that are lists, with thousands of empty parts, from strangers: they are read up to a bound.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { matchesEtag } from '../../src/http/server/cached-page.ts'
import { hasSessionCookie } from '../../src/management/web/sessions.ts'
import { expectCheap } from '../support/cpu.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('a list with too many parts is read up to a bound, and costs little', async () => {
  const commas = ','.repeat(8_000_000)
  expect([matchesEtag(',"a"', '"a"'), matchesEtag(`${commas}"a"`, '"a"')]).toEqual([true, false])
  await expectCheap(50, () => matchesEtag(commas, '"a"'))
})

test('the cookie of a session is found behind any number of others', async () => {
  const others = 'a=1; '.repeat(5_000)
  expect(hasSessionCookie(`${others}weir_refresh=x`)).toBe(true)
  expect([hasSessionCookie(others), hasSessionCookie('xweir_refresh=x'), hasSessionCookie(undefined)]).toEqual([
    false,
    false,
    false,
  ])
  await expectCheap(200, () => hasSessionCookie(`;${' '.repeat(2_000_000)}`))
  await expectCheap(200, () => hasSessionCookie('; '.repeat(1_000_000)))
})

test('an Authorization header of many blanks is no token', async () => {
  const ask = (authorization: string): Promise<Response> =>
    fetch(`${harness.url}/api/web/me`, { headers: { authorization } })
  expect((await ask(`Bearer${' '.repeat(10_000)}x`)).status).toBe(401)
})
