// A key that is revoked while it is in use: its calls end with an error in their dialects, and what was delivered is
// paid for. Other keys go on.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, gate, script } from '../../tools/fake-upstream/script.ts'
import { errorOf, eventsOf, openCall, startHasty } from '../forwarding/caller.ts'
import { holdTimers } from '../forwarding/held-timers.ts'
import { piece, role } from '../forwarding/wire.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHasty()
})
afterAll(() => harness.stop())

const never = new Promise<void>(() => {})
/** Sends some content, and then nothing more. */
const unfinished = (): Script => script(streamHead, chunk(role() + piece('four') + piece('more')), gate(never))
const revoke = (key: string): Promise<unknown> => harness.weir('keys revoke', { key })

describe('when a key is revoked, its calls', () => {
  test('that stream end with an error event, and pay for what was delivered', async () => {
    const key = await harness.key({ credit: '1' })
    harness.upstream.plan(unfinished())
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream: true })
    const { closed } = await received
    await caller.until(({ text }) => text.includes('more'), 'content has arrived')
    await revoke(key)
    await caller.whole()
    expect(errorOf(eventsOf(caller.body).at(-2)!)).toMatchObject({ code: 'invalid_api_key' })
    expect(eventsOf(caller.body).at(-1)).toBe('[DONE]')
    await closed
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'revoked', rule: 'revoked_answered', status: 401 })
    expect(harness.lastRecord()!.cost).toBeGreaterThan(0)
    expect(harness.openHolds()).toBe(0)
  })

  test('that wait are refused, and pay for the input that was read', async () => {
    const key = await harness.key({ credit: '1' })
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, {})
    await received
    await revoke(key)
    await caller.whole()
    expect(caller.status).toBe(401)
    await harness.idle()
    const record = harness.lastRecord()!
    expect(record).toMatchObject({ outcome: 'revoked', rule: 'revoked_waiting', status: 401, output_tokens: 0 })
    expect(record).toMatchObject({ usage_source: 'estimated', lines: JSON.stringify([['input', 21, '0.15']]) })
    expect([record.input_tokens, record.cost]).toEqual([21, 21 * 150])
    expect(await harness.balance(key)).toMatchObject({ balance: '0.99999685', held: '0.00' })
    expect(harness.openHolds()).toBe(0)
    expect((await openCall(harness, key, {}).whole()).status).toBe(401)
  })

  test('end, and those of other keys do not', async () => {
    const key = await harness.key({ credit: '1' })
    const otherKey = await harness.key({ credit: '1' })
    harness.upstream.plan(unfinished())
    const caller = openCall(harness, otherKey, { stream: true })
    await caller.until(({ text }) => text.includes('more'), 'content has arrived')
    await revoke(key)
    await until(() => harness.gateway.activeCalls === 1, 'the other call goes on')
    expect(caller.isWhole).toBe(false)
    caller.leave()
    await harness.idle()
  })
})

test('the operator may give the calls of a revoked key some time', async () => {
  const graceSeconds = 77
  const patient = await startHasty({ env: { WEIR_REVOKED_SECONDS: String(graceSeconds) } })
  const grace = holdTimers(graceSeconds * 1_000)
  try {
    const key = await patient.key({ credit: '1' })
    patient.upstream.plan(unfinished())
    const caller = openCall(patient, key, { stream: true })
    await caller.until(({ text }) => text.includes('more'), 'content has arrived')
    await patient.weir('keys revoke', { key })
    expect((await openCall(patient, key, {}).whole()).status).toBe(401)
    expect(caller.isWhole).toBe(false)
    grace.release()
    await caller.whole()
    await patient.idle()
    expect(patient.records()).toMatchObject([{ outcome: 'revoked' }])
  } finally {
    grace.release()
    await patient.stop()
  }
})
