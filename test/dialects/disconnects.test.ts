// Translated streams whose caller disconnects or whose gateway drains: they are settled once, release their hold, and close
// the upstream connection.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { buildFramesTo, streamHead } from '../../tools/fake-upstream/answers.ts'
import { formatEvent } from '../../tools/fake-upstream/dialect.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, end, gate, scripted } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import type { CallerDialect } from './raw-callers.ts'
import { eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, modelsWithoutThinking, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeEach(async () => {
  harness = await startDialects({ models: modelsWithoutThinking, env: { WEIR_DRAIN_SECONDS: '60' } })
  key = await harness.key()
})
afterEach(() => harness.stop())

const pairs: readonly (readonly [CallerDialect, Dialect])[] = [
  ['openai-chat', 'anthropic-messages'],
  ['openai-responses', 'gemini'],
  ['anthropic-messages', 'openai-responses'],
  ['gemini', 'openai-chat'],
  ['gemini-array', 'ark'],
  ['ark', 'gemini'],
]

/** Waits before this piece of the text until `opens` resolves. */
const pauseBefore = (stopAt: number, opens: Promise<unknown>): Script =>
  scripted(function* steps(request) {
    yield streamHead
    let number = 0
    for (const frame of buildFramesTo(request, ['Hel', 'lo ', 'there'])) {
      if (frame.kind === 'piece' && number++ === stopAt) yield gate(opens)
      yield chunk(formatEvent(frame))
    }
    yield end
  })

describe.each(pairs)('a stream of %s on %s', (callerDialect, upstream) => {
  const input = { model: modelOf(upstream), stream: true }
  const { completed: textOfCompleted } = rawCallers[callerDialect]

  test.each([0, 1, 2])('is settled as client_left when the caller disconnects before piece %i', async stopAt => {
    const { promise, resolve } = Promise.withResolvers<void>()
    harness.upstream.plan(pauseBefore(stopAt, promise))
    const received = harness.upstream.nextRequest()
    const caller = openRaw(harness.url, requestOf(callerDialect, key, input))
    const request = await received
    if (stopAt > 0) await caller.until(({ head }) => head !== '', 'the caller has the earlier pieces')
    caller.leave()
    await request.closed
    resolve()
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.records()).toMatchObject([{ outcome: 'client_left', status: 499 }])
    expect(await harness.balance(key)).toMatchObject({ held: '0.00' })
  })

  test('with an Idempotency-Key continues without its caller, and is replayed', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    harness.upstream.plan(pauseBefore(2, promise))
    const received = harness.upstream.nextRequest()
    const headers = { 'idempotency-key': 'once' }
    const caller = openRaw(harness.url, requestOf(callerDialect, key, input, headers))
    await received
    await caller.until(({ head }) => head !== '', 'the head is there')
    caller.leave()
    await caller.closed
    resolve()
    await harness.idle()
    const replayed = await openRaw(harness.url, requestOf(callerDialect, key, input, headers)).whole()
    expect([replayed.status, replayed.header('x-weir-replayed')]).toEqual([200, expect.stringMatching(/^req_/)])
    expect(textOfCompleted(eventsOfBody(callerDialect, replayed.body))).toBe('Hello there')
    expect(harness.upstream.requests).toHaveLength(1)
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
  })

  test('is awaited by a drain', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    harness.upstream.plan(pauseBefore(2, promise))
    const received = harness.upstream.nextRequest()
    const caller = openRaw(harness.url, requestOf(callerDialect, key, input))
    await received
    await caller.until(({ head }) => head !== '', 'the head is there')
    const drained = harness.gateway.drain()
    resolve()
    await caller.whole()
    expect(textOfCompleted(eventsOfBody(callerDialect, caller.body))).toBe('Hello there')
    await drained
    expect([harness.openHolds(), harness.records()]).toMatchObject([0, [{ outcome: 'completed' }]])
  })
})
