// A caller with an idempotency key that leaves: its call goes on to its end, within bounds, and waits for it.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { textId } from '../../src/base/ids.ts'
import { plain, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { errorOf, eventsOf, startHasty } from './caller.ts'
import { ask as askOne, freshName, idOf, open as openOne, spends } from './repeated.ts'
import { done, finish, piece, role, sends, usageOnly } from './wire.ts'

let name: string
beforeEach(() => {
  name = freshName()
})

describe('a caller that leaves', () => {
  let harness: Harness
  let key: string
  beforeAll(async () => {
    harness = await startHasty()
    key = await harness.key({ qpm: 100_000 })
  })
  afterAll(() => harness.stop())

  const ask = (more: object = {}) => askOne({ harness, key, name }, more)
  const open = (more: object = {}) => openOne({ harness, key, name }, more)

  test('finds the whole plain answer when it comes again', async () => {
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
    expect((await ask()).status).toBe(409)
    opens.resolve()
    await harness.idle()
    expect(request.closedAtMs).toBeUndefined()
    const again = await ask()
    expect(await again.text()).toContain('All of it')
    const completed = harness.records().findLast(({ outcome }) => outcome === 'completed')
    expect(completed).toMatchObject({ status: 200, usage_source: 'reported' })
    expect(again.headers.get('x-weir-replayed')).toBe(textId('req', Number(completed!.call_id)))
  })

  test.each(['before its first content', 'after its first content'])('finds the whole stream, %s', async when => {
    const opens = Promise.withResolvers<void>()
    const begun = when.startsWith('after') ? role() + piece('Hel') : role()
    const rest = when.startsWith('after') ? piece('lo') : piece('Hel') + piece('lo')
    const steps = [chunk(begun), gate(opens.promise), chunk(rest + finish() + usageOnly(7, 5) + done), end]
    harness.upstream.plan(script(streamHead, ...steps))
    const received = harness.upstream.nextRequest()
    const caller = open({ stream: true })
    const request = await received
    if (when.startsWith('after')) await caller.until(({ text }) => text.includes('Hel'), 'content is here')
    else await until(() => request.bytesWritten > 100, 'the role is out')
    caller.leave()
    await caller.closed
    await spends(harness, { upstream: 0, charges: 1, records: 2 }, async () => {
      expect((await ask({ stream: true })).status).toBe(409)
      opens.resolve()
    })
    const completed = harness.records().findLast(({ outcome }) => outcome === 'completed')
    expect(completed).toMatchObject({ usage_source: 'reported', input_tokens: 7, output_tokens: 5, streamed: 1 })
    const again = await ask({ stream: true })
    expect(await again.text()).toBe(role() + piece('Hel') + piece('lo') + finish() + done)
    expect(harness.openHolds()).toBe(0)
  })

  test('finds the whole stream, after a head that left in silence', async () => {
    const quiet = await startHasty({ world: { silence: { headMs: 50, heartbeatMs: 20 } } })
    try {
      const asking = { harness: quiet, key: await quiet.key(), name }
      const opens = Promise.withResolvers<void>()
      const stream = role() + piece('Hello') + finish()
      quiet.upstream.plan(script(streamHead, gate(opens.promise), chunk(stream + usageOnly(7, 5) + done), end))
      const caller = openOne(asking, { stream: true })
      await caller.until(({ text }) => text.includes(': \n\n: \n\n'), 'heartbeats are here')
      caller.leave()
      await caller.closed
      expect((await askOne(asking, { stream: true })).status).toBe(409)
      opens.resolve()
      await quiet.idle()
      const again = await askOne(asking, { stream: true })
      expect(again.headers.get('content-type')).toBe(caller.header('content-type')!)
      expect(await again.text()).toBe(stream + done)
    } finally {
      await quiet.stop()
    }
  })

  test('and does not read is let go, and its call goes on', async () => {
    const hasty = await startHasty({ world: { attemptTimes: { firstContentMs: 5_000, betweenChunksMs: 300 } } })
    try {
      const asking = { harness: hasty, key: await hasty.key(), name }
      const long = piece('z'.repeat(900_000))
      hasty.upstream.plan(sends(role() + long.repeat(40) + finish() + usageOnly(7, 5) + done, 900_000))
      const caller = openOne(asking, { stream: true })
      await caller.until(({ head }) => head !== '', 'the head is here')
      caller.stopReading()
      const sinceMs = performance.now()
      await hasty.idle()
      expect(performance.now() - sinceMs).toBeGreaterThan(250) // its socket was full for as long as it may be
      expect(hasty.records().at(-1)).toMatchObject({ outcome: 'completed', usage_source: 'reported', output_tokens: 5 })
      expect(errorOf(await (await askOne(asking, { stream: true })).text()).code).toBe('idempotency_not_kept')
      caller.leave()
    } finally {
      await hasty.stop()
    }
  })

  test('is an ordinary leave when too many go on without their callers', async () => {
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
  let own: Harness
  let ownKey: string
  const clock = { nowMs: () => performance.now() + jumpMs, dateMs: () => Date.now() + jumpMs }

  beforeAll(async () => {
    own = await startHasty({ world: { clock } })
    ownKey = await own.key()
  })
  afterAll(() => own.stop())

  const send = (more: object = {}) => askOne({ harness: own, key: ownKey, name }, more)
  const leave = (more: object) => openOne({ harness: own, key: ownKey, name }, more)

  test('a stream goes on without its caller for so long, and then ends as for any that left', async () => {
    const never = Promise.withResolvers<void>()
    own.upstream.plan(script(streamHead, chunk(role() + piece('Hel')), gate(never.promise)))
    const caller = leave({ stream: true })
    await caller.until(({ text }) => text.includes('Hel'), 'content is here')
    caller.leave()
    await caller.closed
    expect((await send({ stream: true })).status).toBe(409)
    jumpMs += bounds.callerGoneMsMax
    await own.idle()
    expect(own.records().find(({ streamed, outcome }) => streamed === 1 && outcome === 'client_left')).toBeDefined()
    const again = eventsOf(await (await send({ stream: true })).text())
    expect(again[1]).toContain('"Hel"')
    expect(errorOf(again[2]!).code).toBe('upstream_failed')
    expect(own.openHolds()).toBe(0)
  })

  test('a plain call likewise, and its key is free again', async () => {
    own.upstream.plan(silence())
    const received = own.upstream.nextRequest()
    const caller = leave({})
    const request = await received
    caller.leave()
    await caller.closed
    expect((await send()).status).toBe(409)
    jumpMs += bounds.callerGoneMsMax
    await request.closed
    await own.idle()
    expect((await send()).status).toBe(200)
  })

  test('a clock that is ahead of the ledger does not execute a call twice', async () => {
    const first = await send()
    jumpMs += bounds.idempotentAnswerMsMax + 1_000
    const before = own.upstream.requests.length
    const again = await send()
    expect(again.headers.get('x-weir-replayed')).toBe(idOf(first))
    expect(again.headers.get('x-pipeline-route')).toMatch(/^pass/) // told by the hold, which comes after
    expect(own.upstream.requests.length).toBe(before)
    expect(own.records().at(-1)).toMatchObject({ outcome: 'replayed', cost: 0, held: 0 })
    expect(own.openHolds()).toBe(0)
  })
})
