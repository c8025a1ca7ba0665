// A stream whose upstream is silent for a while, in every dialect and translated: the head is sent, the caller gets
// heartbeats that its SDK understands, and then a complete answer, or an error event and a valid end.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { errorMidStream, fail, pausedStream, streamed } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { scripted, wait } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import type { Client } from './clients/client.ts'
import { clients } from './clients/list.ts'
import type { CallerDialect } from './raw-callers.ts'
import { eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, startDialects } from './upstreams.ts'

const silence = { headMs: 20, heartbeatMs: 10 }

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ world: { silence }, env: { WEIR_DRAIN_SECONDS: '0' } })
  key = await harness.key({ qpm: 100_000, credit: '1000' })
})
afterAll(() => harness.stop())

/** Waits long enough for a few heartbeats. */
const late = (inner: Script): Script =>
  scripted(function* steps(request) {
    yield wait(60)
    yield* inner.steps(request)
  })

const slowly = (inner: Script): Script =>
  scripted(function* steps(request) {
    for (const step of inner.steps(request)) yield* step.kind === 'chunk' ? [wait(5), step] : [step]
  })

const error = { message: 'Overloaded', type: 'overloaded_error' }

const pairs: readonly (readonly [CallerDialect, Dialect])[] = [
  ['openai-chat', 'openai-chat'],
  ['openai-chat', 'anthropic-messages'],
  ['openai-responses', 'openai-responses'],
  ['openai-responses', 'gemini'],
  ['anthropic-messages', 'anthropic-messages'],
  ['anthropic-messages', 'openai-chat'],
  ['gemini', 'gemini'],
  ['gemini', 'openai-responses'],
  ['gemini-array', 'gemini'],
  ['gemini-array', 'anthropic-messages'],
  ['ark', 'ark'],
  ['ark', 'openai-responses'],
]

/** Heartbeats in the middle of a stream, in dialects where they are not comments. */
const beatsOf: Partial<Record<CallerDialect, RegExp>> = {
  'anthropic-messages': /(event: ping\ndata: \{"type": "ping"\}\n\n){2}$/,
  'gemini': /(data: \{"candidates":\[\{"content":\{"role":"model","parts":\[\{"text":""\}\]\},"index":0\}\]\}\n\n){2}$/,
  'gemini-array': /\}\n\n\n$/, // white space between values
}

/** Heartbeats before any content. */
const firstBeats: Partial<Record<CallerDialect, string>> = {
  'anthropic-messages': 'event: ping\n',
  'gemini': 'data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"index":0}]}\n\n',
  'gemini-array': '\n',
}

describe.each(pairs)('a stream of %s on %s after a silence', (callerDialect, upstream) => {
  const { completed: textOfCompleted, failed: errorOfFailed, error: readError } = rawCallers[callerDialect]

  async function ask(script: Script): Promise<string> {
    harness.upstream.plan(script)
    const input = { model: modelOf(upstream), stream: true }
    const caller = openRaw(harness.url, requestOf(callerDialect, key, input))
    await caller.until(({ head }) => head !== '', 'the caller has the head before the answer')
    await caller.whole()
    expect(caller.status).toBe(200)
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    return caller.text
  }

  test('is complete, and begins with heartbeats', async () => {
    const text = await ask(late(streamed(['Hel', 'lo'])))
    expect(textOfCompleted(eventsOfBody(callerDialect, text))).toBe('Hello')
    expect(text.startsWith(firstBeats[callerDialect] ?? ': \n\n')).toBe(true)
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', streamed: 1 })
  })

  test('in its middle is complete, with heartbeats between its events', async () => {
    const continues = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['Hel', 'lo'], continues.promise))
    const caller = openRaw(harness.url, requestOf(callerDialect, key, { model: modelOf(upstream), stream: true }))
    const beats = beatsOf[callerDialect] ?? /: \n\n: \n\n$/
    await caller.until(({ text }) => text.includes('Hel') && beats.test(text), 'two heartbeats follow the content')
    continues.resolve()
    await caller.whole()
    expect(textOfCompleted(eventsOfBody(callerDialect, caller.text))).toBe('Hello')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', streamed: 1 })
  })

  test('has an error event if the upstream fails before content', async () => {
    const parsed = readError(errorOfFailed(eventsOfBody(callerDialect, await ask(late(fail(500))))), 502)
    expect(parsed.message).toContain('No upstream gave a usable answer.')
    expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed', cost: 0 })
  })

  test('has an error event if the upstream refuses the request', async () => {
    const events = eventsOfBody(
      callerDialect,
      await ask(late(fail(400, { error: { message: 'Too long.', type: 'x' } }))),
    )
    expect(readError(errorOfFailed(events), 400).message).toContain('Too long.')
    expect(harness.lastRecord()).toMatchObject({ outcome: 'refused', cost: 0 })
  })

  test('has an error event if the upstream fails in the middle', async () => {
    const events = eventsOfBody(callerDialect, await ask(late(slowly(errorMidStream(['Hel', 'lo'], error)))))
    expect(readError(errorOfFailed(events), 502).message).not.toBe('')
    expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed' })
  })
})

const others: Readonly<Record<string, Dialect>> = {
  'openai-chat': 'gemini',
  'openai-responses': 'anthropic-messages',
  'anthropic-messages': 'openai-responses',
  'gemini': 'openai-chat',
  'ark': 'anthropic-messages',
}

/** P9: what the SDKs make of such streams. */
describe.each(clients.map(client => [client.name, client] as const))('%s', (_name, client: Client) => {
  test('does not notice a silence in the middle of a stream', async () => {
    const session = client.connect(harness.url, key)
    const options = { model: modelOf(others[client.dialect]!), turns: [session.user('x')] }
    for (const way of ['stream', 'helper'] as const) {
      const continues = new Promise(resolve => setTimeout(resolve, 150))
      harness.upstream.plan(pausedStream(['Hel', 'lo'], continues))
      expect(await session.ask(way, options)).toMatchObject({ text: 'Hello', thoughts: '', calls: [], finish: 'stop' })
    }
  })

  test('waits for a late answer, and raises late errors', async () => {
    const session = client.connect(harness.url, key)
    const upstream = others[client.dialect]!
    for (const way of ['stream', 'helper'] as const) {
      const options = { model: modelOf(upstream), turns: [session.user('x')] }
      harness.upstream.plan(late(slowly(streamed(['Hel', 'lo']))))
      expect((await session.ask(way, options)).text).toBe('Hello')
      for (const script of [fail(500), slowly(errorMidStream(['Hel', 'lo'], error))]) {
        harness.upstream.plan(late(script))
        expect(
          await session.ask(way, options).then(
            () => 'returned as an answer',
            () => 'raised',
          ),
        ).toBe('raised')
      }
    }
  })
})
