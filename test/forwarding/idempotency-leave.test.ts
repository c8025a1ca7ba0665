// A caller with an idempotency key that leaves: its call runs to its end, within bounds, and its answer is stored.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { systemClock } from '../../src/base/clock.ts'
import { textId } from '../../src/base/ids.ts'
import { plain, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { errorOf, eventsOf, standstill, startHasty } from './caller.ts'
import { send as askOne, expectEffects, freshName, idOf, open as openOne } from './idempotent-calls.ts'
import { done, finish, piece, role, sends, usageOnly } from './wire.ts'

let name: string
beforeEach(() => {
  name = freshName()
})

describe('a caller with an idempotency key that leaves', () => {
  let harness: Harness
  let key: string
  beforeAll(async () => {
    harness = await startHasty()
    key = await harness.key({ qpm: 100_000 })
  })
  afterAll(() => harness.stop())

  const send = (more: object = {}) => askOne({ harness, key, name }, more)
  const open = (more: object = {}) => openOne({ harness, key, name }, more)

  test('gets the whole plain answer when it calls again', async () => {
    const opens = Promise.withResolvers<void>()
    harness.upstream.plan(
      scripted(function* waiting(request) {
        yield gate(opens.promise)
        yield* plain('All of it').steps(request)
      }),
    )
    const received = harness.upstream.nextRequest()
    const caller = open()
    const request = await received
    caller.leave()
    await caller.closed
    expect((await send()).status).toBe(409)
    opens.resolve()
    await harness.idle()
    expect(request.closedAtMs).toBeUndefined()
    const replayed = await send()
    expect(await replayed.text()).toContain('All of it')
    const completed = harness.records().findLast(({ outcome }) => outcome === 'completed')
    expect(completed).toMatchObject({ status: 200, usage_source: 'reported' })
    expect(replayed.headers.get('x-weir-replayed')).toBe(textId('req', Number(completed!.call_id)))
  })

  test.each(['before its first content', 'after its first content'])(
    'gets the whole stream when it left %s',
    async when => {
      const opens = Promise.withResolvers<void>()
      const opening = when.startsWith('after') ? role() + piece('Hel') : role()
      const rest = when.startsWith('after') ? piece('lo') : piece('Hel') + piece('lo')
      const steps = [chunk(opening), gate(opens.promise), chunk(rest + finish() + usageOnly(7, 5) + done), end]
      harness.upstream.plan(script(streamHead, ...steps))
      const received = harness.upstream.nextRequest()
      const caller = open({ stream: true })
      const request = await received
      if (when.startsWith('after')) await caller.until(({ text }) => text.includes('Hel'), 'content has arrived')
      else await until(() => request.bytesWritten > 100, 'the role is out')
      caller.leave()
      await caller.closed
      await expectEffects(harness, { upstream: 0, charges: 1, records: 2 }, async () => {
        expect((await send({ stream: true })).status).toBe(409)
        opens.resolve()
      })
      const completed = harness.records().findLast(({ outcome }) => outcome === 'completed')
      expect(completed).toMatchObject({ usage_source: 'reported', input_tokens: 7, output_tokens: 5, streamed: 1 })
      const replayed = await send({ stream: true })
      expect(await replayed.text()).toBe(role() + piece('Hel') + piece('lo') + finish() + done)
      expect(harness.openHolds()).toBe(0)
    },
  )

  test('gets the whole stream when it left after a head that was sent in silence', async () => {
    const quietHarness = await startHasty({ world: { silence: { headMs: 50, heartbeatMs: 20 } } })
    try {
      const idempotentCall = { harness: quietHarness, key: await quietHarness.key(), name }
      const opens = Promise.withResolvers<void>()
      const stream = role() + piece('Hello') + finish()
      quietHarness.upstream.plan(script(streamHead, gate(opens.promise), chunk(stream + usageOnly(7, 5) + done), end))
      const caller = openOne(idempotentCall, { stream: true })
      await caller.until(({ text }) => text.includes(': \n\n: \n\n'), 'heartbeats are here')
      caller.leave()
      await caller.closed
      expect((await askOne(idempotentCall, { stream: true })).status).toBe(409)
      opens.resolve()
      await quietHarness.idle()
      const replayed = await askOne(idempotentCall, { stream: true })
      expect(replayed.headers.get('content-type')).toBe(caller.header('content-type')!)
      expect(await replayed.text()).toBe(stream + done)
    } finally {
      await quietHarness.stop()
    }
  })

  test('is disconnected if it does not read, and its call goes on', async () => {
    let skewMs = 0
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }
    const stallHarness = await startHasty({ world: { clock } })
    try {
      const idempotentCall = { harness: stallHarness, key: await stallHarness.key(), name }
      const long = piece('z'.repeat(900_000))
      stallHarness.upstream.plan(sends(role() + long.repeat(40) + finish() + usageOnly(7, 5) + done, 900_000))
      const received = stallHarness.upstream.nextRequest()
      const caller = openOne(idempotentCall, { stream: true })
      await caller.until(({ head }) => head !== '', 'the head has arrived')
      caller.stopReading()
      await standstill(await received)
      expect(stallHarness.gateway.activeCalls).toBe(1)
      skewMs = bounds.betweenChunksMsMax // the socket was full for as long as it may be
      await stallHarness.idle()
      expect(stallHarness.lastRecord()).toMatchObject({
        outcome: 'completed',
        usage_source: 'reported',
        output_tokens: 5,
      })
      expect(errorOf(await (await askOne(idempotentCall, { stream: true })).text()).code).toBe('idempotency_not_kept')
      caller.leave()
    } finally {
      await stallHarness.stop()
    }
  })

  test('ends its call as usual if too many calls go on without their callers', async () => {
    harness.upstream.planModel('gpt-4o-mini', silence())
    const before = harness.upstream.requests.length
    const callers = Array.from({ length: bounds.callerGoneCallsOfAccountMax + 6 }, () => {
      name = freshName()
      return open()
    })
    await until(() => harness.upstream.requests.length - before === callers.length, 'all are upstream')
    for (const caller of callers) caller.leave()
    await until(() => harness.gateway.activeCalls === bounds.callerGoneCallsOfAccountMax, 'some have ended')
    const left = harness.records().filter(({ outcome }) => outcome === 'client_left')
    expect(left.length).toBe(6)
    expect(harness.openHolds()).toBe(bounds.callerGoneCallsOfAccountMax)
    harness.upstream.planModel('gpt-4o-mini', undefined)
  })
})

describe('when clocks move', () => {
  let jumpMs = 0
  let ownHarness: Harness
  let ownKey: string
  const clock = { nowMs: () => performance.now() + jumpMs, dateMs: () => Date.now() + jumpMs }

  beforeAll(async () => {
    ownHarness = await startHasty({ world: { clock } })
    ownKey = await ownHarness.key()
  })
  afterAll(() => ownHarness.stop())

  const send = (more: object = {}) => askOne({ harness: ownHarness, key: ownKey, name }, more)
  const leave = (more: object) => openOne({ harness: ownHarness, key: ownKey, name }, more)

  test('a stream goes on without its caller for a bounded time, and then ends like that of any caller that left', async () => {
    const blocked = Promise.withResolvers<void>()
    ownHarness.upstream.plan(script(streamHead, chunk(role() + piece('Hel')), gate(blocked.promise)))
    const caller = leave({ stream: true })
    await caller.until(({ text }) => text.includes('Hel'), 'content has arrived')
    caller.leave()
    await caller.closed
    expect((await send({ stream: true })).status).toBe(409)
    jumpMs += bounds.callerGoneMsMax
    await ownHarness.idle()
    expect(
      ownHarness.records().find(({ streamed, outcome }) => streamed === 1 && outcome === 'client_left'),
    ).toBeDefined()
    const replayed = eventsOf(await (await send({ stream: true })).text())
    expect(replayed[1]).toContain('"Hel"')
    expect(errorOf(replayed[2]!).code).toBe('upstream_failed')
    expect(ownHarness.openHolds()).toBe(0)
  })

  test('a plain call goes on for a bounded time too, and its key is free again', async () => {
    ownHarness.upstream.plan(silence())
    const received = ownHarness.upstream.nextRequest()
    const caller = leave({})
    const request = await received
    caller.leave()
    await caller.closed
    expect((await send()).status).toBe(409)
    jumpMs += bounds.callerGoneMsMax
    await request.closed
    await ownHarness.idle()
    expect((await send()).status).toBe(200)
  })

  test('a clock that is ahead of the ledger does not execute a call twice', async () => {
    const first = await send()
    jumpMs += bounds.idempotentAnswerMsMax + 1_000
    const before = ownHarness.upstream.requests.length
    const replayed = await send()
    expect(replayed.headers.get('x-weir-replayed')).toBe(idOf(first))
    expect(replayed.headers.get('x-pipeline-route')).toMatch(/^pass/) // the hold detects the claim, and the hold comes after routing
    expect(ownHarness.upstream.requests.length).toBe(before)
    expect(ownHarness.lastRecord()).toMatchObject({ outcome: 'replayed', cost: 0, held: 0 })
    expect(ownHarness.openHolds()).toBe(0)
  })
})
