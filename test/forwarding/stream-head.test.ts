// When the head of a stream is sent: with the first content, or after a silence; and what it contains then.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import { channelId } from '../../src/upstreams/channels.ts'
import { fail, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Step } from '../../tools/fake-upstream/script.ts'
import { chunk, end, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { errorOf, eventsOf, openCall, startHasty, withoutComments } from './caller.ts'
import { after, done, event, finish, piece, role, usageOnly } from './wire.ts'

describe('until content comes', () => {
  let harness: Harness
  let key: string
  beforeAll(async () => {
    harness = await startHasty()
    key = await harness.key()
  })
  afterAll(() => harness.stop())

  const withheld: readonly (readonly [string, string])[] = [
    ['a role chunk', role()],
    ['two role chunks', role() + role()],
    ['comments', ': hello\n\n: again\n\n'],
    ['an empty piece', role() + piece('')],
    ['usage', usageOnly(3, 0)],
    ['a chunk without choices', event({ id: 'c-1', choices: [], prompt_filter_results: [] })],
    ['half an event', role() + piece('x').slice(0, -1)],
  ]

  /** Checks that the head is sent at `content`, and not before: the upstream knows that its first bytes were taken. */
  async function headComesAt(before: string, content: string): Promise<void> {
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    harness.upstream.plan(
      script(
        streamHead,
        chunk(before),
        gate(first.promise),
        chunk(content),
        gate(second.promise),
        chunk(finish() + done),
        end,
      ),
    )
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream: true })
    const request = await received
    await openCall(harness, key, {}).whole() // another whole call is served meanwhile, and the head has still not been sent
    expect(request.bytesWritten).toBeGreaterThan(before.length)
    expect(caller.head).toBe('')
    first.resolve()
    await caller.until(({ body }) => body.length > 0, 'the first bytes are here')
    expect(caller.status).toBe(200)
    await caller.until(({ text }) => text.includes(content.trim().slice(-20)), 'content passes at once')
    second.resolve()
    await caller.whole()
    expect(caller.text).toEndWith(done)
  }

  test.each(withheld)('%s does not release the head', async (_name, before) => {
    await headComesAt(before, before.endsWith('\n\n') ? piece('now') : `\n${piece('now')}`)
  })

  const releasing: readonly (readonly [string, string])[] = [
    ['text', piece('x')],
    ['a tool call', delta({ tool_calls: [{ index: 0, type: 'function', function: { name: 'f', arguments: '' } }] })],
    ['a refusal', delta({ refusal: 'no' })],
    ['reasoning', delta({ reasoning_content: 'hm' })],
    ['reasoning under its other name', delta({ reasoning: 'hm' })],
    ['a finish', finish()],
  ]

  test.each(releasing)('%s releases the head', async (_name, content) => {
    await headComesAt(role(), content)
  })

  test('each later chunk passes at once', async () => {
    const gates = [0, 1, 2, 3].map(() => Promise.withResolvers<void>())
    const steps = gates.flatMap(({ promise }, at): Step[] => [gate(promise), chunk(piece(`piece-${at}`))])
    harness.upstream.plan(script(streamHead, chunk(role()), ...steps, chunk(finish() + done), end))
    const caller = openCall(harness, key, { stream: true })
    for (const [at, { resolve }] of gates.entries()) {
      expect(caller.text).not.toContain(`piece-${at}`)
      resolve()
      await caller.until(({ text }) => text.includes(`piece-${at}`), `piece ${at} is here`)
    }
    await caller.whole()
  })

  test('the head has the time to the first content and the hold, and nothing that is not known yet', async () => {
    const caller = await openCall(harness, key, { stream: true }).whole()
    expect(caller.header('X-Pipeline-Breakdown')).toMatch(/^fwd=\d+ cost=0 deduct=\d+ record=0 bodies=0$/)
    expect(caller.header('X-Pipeline-Adapter')).toMatch(/^done \(\d+ms\)$/)
    expect(caller.header('content-type')).toStartWith('text/event-stream')
  })
})

function delta(fields: object): string {
  return event({ id: 'c-1', choices: [{ index: 0, delta: fields, finish_reason: null }] })
}

describe('after a silence', () => {
  let harness: Harness
  let key: string
  const limitMs = 60_000
  let skewMs = 0
  beforeAll(async () => {
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }
    const attemptTimes = { firstContentMs: limitMs, betweenChunksMs: limitMs }
    harness = await startHasty({
      world: { clock, silence: { headMs: 60, heartbeatMs: 20 }, attemptTimes, random: () => 0 },
      upstreamKeys: 'first-key,second-key',
    })
    key = await harness.key()
  })
  afterAll(() => harness.stop())

  test('the head is sent with heartbeats, and the answer follows', async () => {
    const opens = Promise.withResolvers<void>()
    const rest = chunk(piece('x') + finish() + done)
    harness.upstream.plan(script(streamHead, chunk(role()), gate(opens.promise), rest, end))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => /^(: \n\n){3,}$/.test(text), 'three heartbeats are here')
    expect(caller.status).toBe(200)
    expect(caller.header('content-type')).toStartWith('text/event-stream')
    opens.resolve()
    await caller.whole()
    expect(withoutComments(caller.body)).toBe(role() + piece('x') + finish() + done)
    expect(caller.text).not.toContain('X-Pipeline-Breakdown')
  })

  test('the head does not wait for a heartbeat', async () => {
    const slow = await startHasty({ world: { silence: { headMs: 30, heartbeatMs: 3_600_000 } } })
    try {
      slow.upstream.plan(silence())
      const caller = openCall(slow, await slow.key(), { stream: true })
      await caller.until(({ head }) => head !== '', 'the head has arrived')
      expect(caller.status).toBe(200)
      caller.leave()
      await slow.idle()
    } finally {
      await slow.stop()
    }
  })

  test('another channel may still answer', async () => {
    const broken = Promise.withResolvers<void>()
    harness.upstream.plan(script(streamHead, chunk(role()), gate(broken.promise), { kind: 'reset' }))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes(': \n\n'), 'a heartbeat has arrived')
    broken.resolve()
    await caller.whole()
    expect(eventsOf(caller.body).at(-1)).toBe('[DONE]')
    expect(caller.text).toContain('Hello,')
    await harness.idle()
    const channel = channelId('openai', 'second-key')
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', attempts: 2, channel })
  })

  test('a failure is an error event, and the stream ends with its terminal event', async () => {
    const broken = Promise.withResolvers<void>()
    harness.upstream.plan(script(gate(broken.promise), { kind: 'reset' }), fail(500))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes(': \n\n'), 'a heartbeat has arrived')
    broken.resolve()
    await caller.whole()
    const [error, last] = eventsOf(caller.body)
    expect(errorOf(error!)).toMatchObject({ type: 'server_error', code: 'upstream_unusable' })
    expect(last).toBe('[DONE]')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed', cost: 0, attempts: 2 })
    expect(harness.openHolds()).toBe(0)
  })

  test('a refusal of the upstream is passed with its message', async () => {
    const refusalGate = Promise.withResolvers<void>()
    const upstreamError = {
      message: 'Too many tokens.',
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
    }
    harness.upstream.plan(after(refusalGate.promise, fail(400, { error: upstreamError })))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes(': \n\n'), 'a heartbeat has arrived')
    refusalGate.resolve()
    await caller.whole()
    expect(errorOf(eventsOf(caller.body)[0]!)).toMatchObject(upstreamError)
    expect(eventsOf(caller.body).at(-1)).toBe('[DONE]')
  })

  test('an upstream that never answers ends in an event within its deadline', async () => {
    const passTime = scripted(() => {
      skewMs += limitMs
      return []
    })
    harness.upstream.plan(silence(), passTime) // the second attempt is as silent as the first
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ head }) => head !== '', 'the head has arrived')
    await received
    skewMs += limitMs
    await caller.whole()
    expect(errorOf(eventsOf(caller.body)[0]!).code).toBe('upstream_too_slow')
    expect(eventsOf(caller.body).at(-1)).toBe('[DONE]')
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
  })

  test('a caller that leaves between heartbeats is settled, and its upstream is released', async () => {
    for (let round = 0; round < 20; round++) {
      harness.upstream.plan(silence())
      const received = harness.upstream.nextRequest()
      const caller = openCall(harness, key, { stream: true })
      await caller.until(({ head }) => head !== '', 'the head has arrived')
      const request = await received
      caller.leave()
      await request.closed
    }
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(
      harness
        .records()
        .slice(-20)
        .map(record => record.outcome),
    ).toEqual(Array(20).fill('client_left'))
  })
})
