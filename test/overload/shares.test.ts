// Many callers at once against a bound on the active calls: one account cannot take the slots of another, no call gets
// past the bound, and every slot is released.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { plain } from '../../tools/fake-upstream/answers.ts'
import type { Caller } from '../forwarding/caller.ts'
import { openCall, startHasty } from '../forwarding/caller.ts'
import { after } from '../forwarding/wire.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'

const CALLS_MAX = 80
let harness: Harness

beforeAll(async () => {
  harness = await startHasty({ env: { WEIR_CALLS_MAX: String(CALLS_MAX) } })
})
afterAll(() => harness.stop())
beforeEach(() => harness.idle())

const openCalls = (key: string, count: number): Caller[] =>
  Array.from({ length: count }, () => openCall(harness, key, { model: 'openai/gpt-4o-mini' }))

/** The calls that were refused at once; the others wait for their upstream. */
const refused = (callers: readonly Caller[]): readonly Caller[] => callers.filter(({ status }) => status !== 0)

test('of five hundred callers of two accounts, the quiet account gets its slots beside the noisy one', async () => {
  const [noisy, quiet] = [await harness.key({ qpm: 10_000 }), await harness.key({ qpm: 10_000 })]
  const ends = Promise.withResolvers<void>()
  harness.upstream.planModel('gpt-4o-mini', after(ends.promise, plain('Hello')))
  const before = harness.upstream.requests.length
  const upstream = (): number => harness.upstream.requests.length - before

  const noisyCalls = openCalls(noisy, 450)
  await until(() => upstream() + refused(noisyCalls).length === 450, 'all of the first are in or refused')
  expect(upstream()).toBe((CALLS_MAX * 7) / 8)
  const quietCalls = openCalls(quiet, 50)
  await until(
    () => upstream() + refused(noisyCalls).length + refused(quietCalls).length === 500,
    'and all of the second',
  )
  expect(refused(quietCalls).length).toBe(50 - CALLS_MAX / 8)
  expect(harness.gateway.activeCalls).toBe(CALLS_MAX)

  for (const caller of [...refused(noisyCalls), ...refused(quietCalls)]) {
    await caller.until(({ isWhole }) => isWhole, 'the refusal is complete')
    expect([caller.status, caller.text.includes('"overloaded"')]).toEqual([503, true])
    expect(caller.header('x-pipeline-ratelimit')).toMatch(/^fail \(\d+ms, reason=overloaded\)$/)
  }
  ends.resolve()
  await Promise.all(
    [...noisyCalls, ...quietCalls].map(caller => caller.until(({ isWhole }) => isWhole, 'the answer is complete')),
  )
  const served = [...noisyCalls, ...quietCalls].filter(({ status }) => status === 200)
  expect(served.length).toBe(CALLS_MAX)
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  for (const caller of [...noisyCalls, ...quietCalls]) caller.leave()
})

test('slots are released however their calls end', async () => {
  const key = await harness.key({ qpm: 10_000 })
  const blocked = new Promise(() => {})
  for (let round = 0; round < 4; round++) {
    harness.upstream.planModel('gpt-4o-mini', after(blocked, plain('Hello')))
    const before = harness.upstream.requests.length
    const callers = openCalls(key, CALLS_MAX)
    await until(
      () => harness.upstream.requests.length - before + refused(callers).length === CALLS_MAX,
      'all are in or refused',
    )
    expect(harness.upstream.requests.length - before).toBe((CALLS_MAX * 7) / 8)
    for (const caller of callers) caller.leave()
    await harness.idle()
  }
  // Malformed, unroutable, too expensive, unauthenticated: none keeps a slot either.
  harness.upstream.planModel('gpt-4o-mini', undefined)
  const penniless = await harness.key({ credit: '0.000001' })
  const bad = [
    ...Array.from({ length: 100 }, () => openCall(harness, key, '{')),
    ...Array.from({ length: 100 }, () => openCall(harness, key, { model: 'openai/nothing' })),
    ...Array.from({ length: 100 }, () => openCall(harness, penniless, {})),
    ...Array.from({ length: 100 }, () => openCall(harness, 'wk-nobody', {})),
  ]
  await Promise.all(bad.map(caller => caller.whole()))
  const statuses = new Set(bad.map(({ status }) => status))
  for (const status of [400, 404, 402, 401]) expect(statuses).toContain(status)
  await harness.idle()
  const good = openCalls(key, 40)
  await Promise.all(good.map(caller => caller.whole()))
  expect(good.every(({ status }) => status === 200)).toBe(true)
})
