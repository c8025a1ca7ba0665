// A stream that is never silent has no comments unless the caller asks for them, because many hand-written parsers do not
// know comments. With `X-Weir-Comments: on` the final timings are a comment before the last event, and every official SDK
// ignores it. While an upstream is silent, heartbeats of some dialects are comments by default (silence.test.ts); with
// `X-Weir-Comments: off` there are none.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { pausedStream, streamed } from '../../tools/fake-upstream/answers.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import type { Client } from './clients/client.ts'
import { clients } from './clients/list.ts'
import type { CallerDialect } from './raw-callers.ts'
import { callers, eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
/** A proxy that adds `X-Weir-Comments: on`, because no SDK has a setting for it. */
let commentProxy: ReturnType<typeof Bun.serve>
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key({ qpm: 100_000, credit: '1000' })
  commentProxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const headers = new Headers(request.headers)
      headers.set('x-weir-comments', 'on')
      headers.delete('host')
      const body = await request.arrayBuffer()
      return await fetch(harness.url + pathname + search, { method: request.method, headers, body })
    },
  })
})
afterAll(async () => {
  await commentProxy.stop(true)
  await harness.stop()
})

async function ask(callerDialect: CallerDialect, upstream: Dialect, comments?: string): Promise<string> {
  const headers: Record<string, string> = comments === undefined ? {} : { 'x-weir-comments': comments }
  const input = { model: modelOf(upstream), stream: true }
  const caller = openRaw(harness.url, requestOf(callerDialect, key, input, headers))
  await caller.whole()
  expect(caller.status).toBe(200)
  expect(caller.header('x-pipeline-breakdown')).toMatch(/^fwd=\d+ cost=\d+ deduct=\d+ record=0 bodies=0$/)
  return caller.text
}

const TIMINGS = /^: X-Pipeline-Breakdown fwd=\d+ cost=\d+ deduct=\d+ record=\d+ bodies=\d+\n\n/gm

const pairs = callers.flatMap(callerDialect => dialects.map(upstream => [callerDialect, upstream] as const))

describe.each(pairs)('a stream of %s on %s', (callerDialect, upstream) => {
  test('has no comments by default if it is never silent', async () => {
    for (const comments of [undefined, 'off', 'ON THE CONTRARY']) {
      harness.upstream.plan(streamed(['Hel', 'lo']))
      const text = await ask(callerDialect, upstream, comments)
      expect(text).not.toMatch(/^:/m)
      // Every line must be readable for a parser that knows only data and event lines.
      if (callerDialect !== 'gemini-array') {
        for (const line of text.split(/\r?\n/)) expect(line).toMatch(/^($|data: |event: )/)
      }
      expect(rawCallers[callerDialect].completed(eventsOfBody(callerDialect, text))).toBe('Hello')
    }
  })

  test('has the timings before its last event with X-Weir-Comments: on', async () => {
    harness.upstream.plan(streamed(['Hel', 'lo']))
    const text = await ask(callerDialect, upstream, 'on')
    expect(rawCallers[callerDialect].completed(eventsOfBody(callerDialect, text))).toBe('Hello')
    expect(text.match(TIMINGS) ?? []).toHaveLength(callerDialect === 'gemini-array' ? 0 : 1)
    const [, last = ''] = text.split(TIMINGS)
    if (callerDialect !== 'gemini-array') expect(eventsOfBody(callerDialect, last).length).toBeGreaterThan(0)
  })
})

test('with X-Weir-Comments: on heartbeats are comments, also in a dialect with pings', async () => {
  const silent = await startDialects({ world: { silence: { headMs: 20, heartbeatMs: 10 } } })
  try {
    const continues = Promise.withResolvers<void>()
    silent.upstream.plan(pausedStream(['Hel', 'lo'], continues.promise))
    const input = { model: modelOf('anthropic-messages'), stream: true }
    const on = { 'x-weir-comments': 'on' }
    const caller = openRaw(silent.url, requestOf('anthropic-messages', await silent.key(), input, on))
    await caller.until(({ text }) => /: \n\n: \n\n/.test(text), 'comments arrive')
    continues.resolve()
    await caller.whole()
    expect(caller.text).not.toContain('{"type": "ping"}') // the ping of the gateway; pings of the upstream pass
  } finally {
    await silent.stop()
  }
})

test.each([['openai-chat'], ['openai-responses'], ['ark']] as const)(
  '%s has no comments as heartbeats with X-Weir-Comments: off',
  async callerDialect => {
    const silent = await startDialects({ world: { silence: { headMs: 20, heartbeatMs: 10 } } })
    try {
      const ownKey = await silent.key()
      const input = { model: modelOf(callerDialect), stream: true }
      const calls = ['off', 'on'].map(comments => {
        const continues = Promise.withResolvers<void>()
        silent.upstream.plan(pausedStream(['Hel', 'lo'], continues.promise))
        const caller = openRaw(silent.url, requestOf(callerDialect, ownKey, input, { 'x-weir-comments': comments }))
        return { caller, continues }
      })
      // When one caller has three comments, the other would have one.
      await calls[1]!.caller.until(({ text }) => /: \n\n: \n\n: \n\n/.test(text), 'comments arrive')
      await calls[0]!.caller.until(({ text }) => text.includes('Hel'), 'the first piece has arrived')
      // All at once: the upstream may have taken the two scripts in the other order.
      for (const { continues } of calls) continues.resolve()
      for (const { caller } of calls) {
        await caller.whole()
        expect(rawCallers[callerDialect].completed(eventsOfBody(callerDialect, caller.text))).toBe('Hello')
      }
      expect(calls[0]!.caller.text).not.toMatch(/^:/m)
    } finally {
      await silent.stop()
    }
  },
)

describe.each(clients.map(client => [client.name, client] as const))('%s', (name, client: Client) => {
  // Google's earlier SDK does not know comments, and is recognised by its user agent.
  test('ignores comments', async () => {
    const session = client.connect(commentProxy.url.origin, key)
    for (const way of ['stream', 'helper'] as const) {
      harness.upstream.plan(streamed(['Hel', 'lo']))
      const options = { model: modelOf(client.dialect), turns: [session.user('x')] }
      expect([name, (await session.ask(way, options)).text]).toEqual([name, 'Hello'])
    }
  })
})
