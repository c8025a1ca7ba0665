// What stands in a stream beside the events of its dialect: something unreadable after the end of the answer, which spoils
// nothing, and errors that are no events.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bytes, end, head, script, toBytes } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ env: { WEIR_ATTEMPTS: '1' } })
  key = await harness.key({ credit: '1000', qpm: 100_000 })
})
afterAll(() => harness.stop())

async function ask(caller: Dialect, upstream: Dialect, stream: string) {
  const body = toBytes(stream)
  const headers = { 'content-type': 'text/event-stream', 'content-length': String(body.length) }
  harness.upstream.plan(script(head(200, headers), bytes(body), end))
  const answer = await rawRequest(harness.url, requestOf(caller, key, { model: modelOf(upstream), stream: true }))
  await harness.idle()
  return { ...answer, record: harness.lastRecord()! }
}

/** The events of a good answer. */
const eventsIn = (dialect: Dialect): readonly string[] =>
  readFileSync(join(import.meta.dir, 'golden', 'upstream', `${dialect}.sse`), 'utf8').match(/[^]+?(?:\r?\n){2}/g)!

/** Their last event, where it is not the one that ends the answer. */
const lastOf: readonly (readonly [Dialect, lastEvents: number])[] = [
  ['openai-chat', 1],
  ['anthropic-messages', 1],
  ['gemini', 0],
  ['ark', 1],
  // In openai-responses the last event ends the answer, and what follows is not read.
]
const strays = ['data: ok\n\n', 'data: "[DONE]"\n\n', 'data: {"usage":\n\n', 'data: null\n\n']

test.each(lastOf)(
  'after the end of an answer of %s, what cannot be read spoils nothing',
  async (upstream, lastEvents) => {
    const events = eventsIn(upstream)
    for (const caller of dialects) {
      const expected = await ask(caller, upstream, events.join(''))
      const text = rawCallers[caller].completed(eventsOfBody(caller, expected.body))
      expect(text).not.toBe('')
      for (const stray of strays) {
        const { status, body, record } = await ask(
          caller,
          upstream,
          events.toSpliced(events.length - lastEvents, 0, stray).join(''),
        )
        expect([stray, status, record.outcome, record.cost]).toEqual([stray, 200, 'completed', expected.record.cost])
        expect(rawCallers[caller].completed(eventsOfBody(caller, body))).toBe(text)
        if (caller === upstream) expect(String(body)).toBe(String(expected.body))
      }
    }
  },
)

test('before its end it is an answer that cannot be used', async () => {
  for (const upstream of dialects) {
    const events = eventsIn(upstream)
    const { status, record } = await ask('openai-chat', upstream, events.toSpliced(2, 0, strays[0]!).join(''))
    expect([upstream, status, record.outcome]).toEqual([upstream, 502, 'upstream_failed'])
  }
})

const overloaded = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }

test.each([
  ['one line', 0],
  ['several lines', 2],
])('an error that is JSON of %s in place of an event reaches the caller', async (_about, indent) => {
  const started = eventsIn('gemini').slice(0, 3).join('')
  for (const caller of dialects) {
    for (const after of ['', '\r\n']) {
      const { status, body, record } = await ask(
        caller,
        'gemini',
        started + JSON.stringify(overloaded, null, indent) + after,
      )
      expect([caller, status, record.outcome]).toEqual([caller, 200, 'upstream_failed'])
      const failure = rawCallers[caller].failed(eventsOfBody(caller, body))
      expect(JSON.stringify(failure)).toContain('The model is overloaded.')
    }
  }
})

test('other JSON in place of an event is nothing', async () => {
  const [first, ...others] = eventsIn('gemini')
  const { record, body } = await ask('openai-chat', 'gemini', `${first}{"candidates":[]}\n\n${others.join('')}`)
  expect(record.outcome).toBe('completed')
  rawCallers['openai-chat'].completed(eventsOfBody('openai-chat', body))
})
