// Translated streams whose caller or gateway goes away: settled once, nothing held, and the upstream is let go.

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
  harness = await startDialects({ models: modelsWithoutThinking, env: { WEIR_DRAIN_SECONDS: '5' } })
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

/** Stops before this piece of the text until the gate opens. */
const gated = (stopAt: number, opens: Promise<unknown>): Script =>
  scripted(function* steps(request) {
    yield streamHead
    let number = 0
    for (const frame of buildFramesTo(request, ['Hel', 'lo ', 'there'])) {
      if (frame.kind === 'piece' && number++ === stopAt) yield gate(opens)
      yield chunk(formatEvent(frame))
    }
    yield end
  })

describe.each(pairs)('%s on %s', (speaker, upstream) => {
  const asked = { model: modelOf(upstream), stream: true }
  const { completed: ended } = rawCallers[speaker]

  test.each([0, 1, 2])('the caller leaves before piece %i', async stopAt => {
    const { promise, resolve } = Promise.withResolvers<void>()
    harness.upstream.plan(gated(stopAt, promise))
    const received = harness.upstream.nextRequest()
    const caller = openRaw(harness.url, requestOf(speaker, key, asked))
    const request = await received
    if (stopAt > 0) await caller.until(({ head }) => head !== '', 'the pieces before it are here')
    caller.leave()
    await request.closed
    resolve()
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.records()).toMatchObject([{ outcome: 'client_left', status: 499 }])
    expect(await harness.balance(key)).toMatchObject({ held: '0.00' })
  })

  test('with an Idempotency-Key the answer goes on without its caller, and is given again', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    harness.upstream.plan(gated(2, promise))
    const received = harness.upstream.nextRequest()
    const headers = { 'idempotency-key': 'once' }
    const caller = openRaw(harness.url, requestOf(speaker, key, asked, headers))
    await received
    await caller.until(({ head }) => head !== '', 'the head is there')
    caller.leave()
    await caller.closed
    resolve()
    await harness.idle()
    const again = await openRaw(harness.url, requestOf(speaker, key, asked, headers)).whole()
    expect([again.status, again.header('x-weir-replayed')]).toEqual([200, expect.stringMatching(/^req_/)])
    expect(ended(eventsOfBody(speaker, again.body))).toBe('Hello there')
    expect(harness.upstream.requests).toHaveLength(1)
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
  })

  test('a drain waits for the end of a stream', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    harness.upstream.plan(gated(2, promise))
    const received = harness.upstream.nextRequest()
    const caller = openRaw(harness.url, requestOf(speaker, key, asked))
    await received
    await caller.until(({ head }) => head !== '', 'the head is there')
    const drained = harness.gateway.drain()
    resolve()
    await caller.whole()
    expect(ended(eventsOfBody(speaker, caller.body))).toBe('Hello there')
    await drained
    expect([harness.openHolds(), harness.records()]).toMatchObject([0, [{ outcome: 'completed' }]])
  })
})
