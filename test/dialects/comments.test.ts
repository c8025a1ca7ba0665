// No stream has a comment that nobody asked for: many who read events by hand know none. With `X-Weir-Comments: on` the
// final figures are one, before the last event, and every official SDK passes over it.

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
/** Passes calls on, with a wish for comments that no SDK has a setting for. */
let asking: ReturnType<typeof Bun.serve>
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key({ qpm: 100_000, credit: '1000' })
  asking = Bun.serve({
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
  await asking.stop(true)
  await harness.stop()
})

async function ask(speaker: CallerDialect, upstream: Dialect, comments?: string): Promise<string> {
  const headers: Record<string, string> = comments === undefined ? {} : { 'x-weir-comments': comments }
  const asked = { model: modelOf(upstream), stream: true }
  const caller = openRaw(harness.url, requestOf(speaker, key, asked, headers))
  await caller.whole()
  expect(caller.status).toBe(200)
  expect(caller.header('x-pipeline-breakdown')).toMatch(/^fwd=\d+ cost=\d+ deduct=\d+ record=0 bodies=0$/)
  return caller.text
}

const FIGURES = /^: X-Pipeline-Breakdown fwd=\d+ cost=\d+ deduct=\d+ record=\d+ bodies=\d+\n\n/gm

const pairs = callers.flatMap(speaker => dialects.map(upstream => [speaker, upstream] as const))

describe.each(pairs)('%s on %s', (speaker, upstream) => {
  test('has no comments', async () => {
    for (const comments of [undefined, 'off', 'ON THE CONTRARY']) {
      harness.upstream.plan(streamed(['Hel', 'lo']))
      const text = await ask(speaker, upstream, comments)
      expect(text).not.toMatch(/^:/m)
      // As those read it who go line by line and know nothing but data and names.
      if (speaker !== 'gemini-array') {
        for (const line of text.split(/\r?\n/)) expect(line).toMatch(/^($|data: |event: )/)
      }
      expect(rawCallers[speaker].completed(eventsOfBody(speaker, text))).toBe('Hello')
    }
  })

  test('has the figures before its last event if asked for', async () => {
    harness.upstream.plan(streamed(['Hel', 'lo']))
    const text = await ask(speaker, upstream, 'on')
    expect(rawCallers[speaker].completed(eventsOfBody(speaker, text))).toBe('Hello')
    expect(text.match(FIGURES) ?? []).toHaveLength(speaker === 'gemini-array' ? 0 : 1)
    const [, last = ''] = text.split(FIGURES)
    if (speaker !== 'gemini-array') expect(eventsOfBody(speaker, last).length).toBeGreaterThan(0)
  })
})

test('who asked for comments waits with them, also where its dialect has a ping', async () => {
  const silent = await startDialects({ world: { silence: { headMs: 20, heartbeatMs: 10 } } })
  try {
    const goesOn = Promise.withResolvers<void>()
    silent.upstream.plan(pausedStream(['Hel', 'lo'], goesOn.promise))
    const asked = { model: modelOf('anthropic-messages'), stream: true }
    const on = { 'x-weir-comments': 'on' }
    const caller = openRaw(silent.url, requestOf('anthropic-messages', await silent.key(), asked, on))
    await caller.until(({ text }) => /: \n\n: \n\n/.test(text), 'comments that were asked for')
    goesOn.resolve()
    await caller.whole()
    expect(caller.text).not.toContain('{"type": "ping"}') // as we would write it; the upstream's own passes
  } finally {
    await silent.stop()
  }
})

test.each([['openai-chat'], ['openai-responses'], ['ark']] as const)('%s waits without comments', async speaker => {
  const silent = await startDialects({ world: { silence: { headMs: 20, heartbeatMs: 10 } } })
  try {
    const own = await silent.key()
    const asked = { model: modelOf(speaker), stream: true }
    const ways = ['off', 'on'].map(comments => {
      const goesOn = Promise.withResolvers<void>()
      silent.upstream.plan(pausedStream(['Hel', 'lo'], goesOn.promise))
      const caller = openRaw(silent.url, requestOf(speaker, own, asked, { 'x-weir-comments': comments }))
      return { caller, goesOn }
    })
    // By the time that one has been sent three, the other would have been sent one.
    await ways[1]!.caller.until(({ text }) => /: \n\n: \n\n: \n\n/.test(text), 'comments that were asked for')
    await ways[0]!.caller.until(({ text }) => text.includes('Hel'), 'the first piece is here')
    for (const { caller, goesOn } of ways) {
      goesOn.resolve()
      await caller.whole()
      expect(rawCallers[speaker].completed(eventsOfBody(speaker, caller.text))).toBe('Hello')
    }
    expect(ways[0]!.caller.text).not.toMatch(/^:/m)
  } finally {
    await silent.stop()
  }
})

describe.each(clients.map(client => [client.name, client] as const))('%s', (name, client: Client) => {
  // The former SDK of Google knows none, and is known by its name.
  test('passes over comments that were asked for', async () => {
    const session = client.connect(asking.url.origin, key)
    for (const way of ['stream', 'helper'] as const) {
      harness.upstream.plan(streamed(['Hel', 'lo']))
      const wish = { model: modelOf(client.dialect), turns: [session.user('x')] }
      expect([name, (await session.ask(way, wish)).text]).toEqual([name, 'Hello'])
    }
  })
})
