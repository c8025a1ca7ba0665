// Invalid requests in every dialect and for every upstream: the caller gets a clear 4xx in its dialect, or an answer within
// bounds, and no hold stays open.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { jsonAnswer, streamed, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, script } from '../../tools/fake-upstream/script.ts'
import { chunkSizes, lineEndings, shaped } from '../../tools/fake-upstream/script-changes.ts'
import { openRaw, withoutComments } from '../forwarding/caller.ts'
import { expectCheap } from '../support/cpu.ts'
import type { Harness } from '../support/gateway.ts'
import { post as rawPost, rawRequest } from '../support/raw.ts'
import { eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key({ qpm: 100_000, credit: '1000' })
})
afterAll(() => harness.stop())

const TEN_MB = Buffer.alloc(10_000_000, 7).toString('base64')
const image = (base64: string) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } })
const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
const chat = (...messages: readonly object[]) => ({ messages })
const picture = (data: string) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } })
const messagesBody = (...content: readonly object[]) => ({ max_tokens: 9, messages: [{ role: 'user', content }] })
const items = (...input: readonly object[]) => ({ store: false, input })
const contents = (role: string, ...parts: readonly object[]) => ({ contents: [{ role, parts }] })
const result = { type: 'function_call_output', output: '' }
const user = { role: 'user', content: 'x' }

/** `either`: some upstreams accept the request. */
type Row = readonly [name: string, caller: Dialect, body: object, status: 200 | 400 | 'either']

const rows: readonly Row[] = [
  ['a result without its call', 'openai-chat', chat(user, { role: 'tool', tool_call_id: 'c', content: 'y' }), 400],
  ['a call without result', 'openai-chat', chat(user, { role: 'assistant', tool_calls: [call] }, user), 400],
  ['empty content', 'openai-chat', chat({ role: 'user', content: '' }), 'either'],
  ['a large picture', 'openai-chat', chat({ role: 'user', content: [image(TEN_MB)] }), 'either'],
  ['no base64', 'openai-chat', chat({ role: 'user', content: [image('@@@@')] }), 400],
  ['a system message in the middle', 'openai-chat', chat(user, { role: 'system', content: 'y' }, user), 200],
  ['an unknown role', 'openai-chat', chat({ role: 'wizard', content: 'x' }), 400],
  ['a stream that is a text', 'openai-chat', { ...chat(user), stream: 'true' }, 400],
  ['a result without its call', 'anthropic-messages', messagesBody({ type: 'tool_result', tool_use_id: 't' }), 400],
  ['a large picture', 'anthropic-messages', messagesBody(picture(TEN_MB)), 'either'],
  ['no base64', 'anthropic-messages', messagesBody(picture('%%%')), 400],
  ['an unknown role', 'anthropic-messages', { max_tokens: 9, messages: [{ role: 'wizard', content: 'x' }] }, 400],
  ['a stream that is a text', 'anthropic-messages', { max_tokens: 9, messages: [user], stream: 'true' }, 400],
  ['a result without its call', 'openai-responses', items({ ...result, call_id: 'c' }), 400],
  ['an unknown role', 'openai-responses', items({ role: 'wizard', content: 'x' }), 400],
  ['a stream that is a text', 'openai-responses', { ...items(user), stream: 'true' }, 400],
  ['a result without its call', 'gemini', contents('user', { functionResponse: { name: 'f', response: {} } }), 400],
  ['no base64', 'gemini', contents('user', { inlineData: { mimeType: 'image/png', data: '%%' } }), 400],
  ['an unknown role', 'gemini', contents('wizard', { text: 'x' }), 400],
  ['no parts', 'gemini', contents('user'), 400],
  [
    'both spellings',
    'gemini',
    {
      ...contents('user', { inline_data: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }, { text: 'x' }),
      system_instruction: { parts: [{ text: 's' }] },
      generationConfig: { max_output_tokens: 20, topP: 0.5 },
    },
    200,
  ],
]

async function post(path: string, body: object): Promise<{ readonly status: number; readonly text: string }> {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const signal = AbortSignal.timeout(100_000)
  const answer = await fetch(harness.url + path, { method: 'POST', headers, body: JSON.stringify(body), signal })
  return { status: answer.status, text: await answer.text() }
}

const cells = rows.flatMap(row => dialects.map(upstream => [row[0], row[1], upstream, row] as const))

test.each(cells)('%s is refused or served: %s on %s', async (_name, caller, upstream, [, , body, expectedStatus]) => {
  const model = modelOf(upstream)
  const path = rawCallers[caller].path({ model, stream: false })
  const { status, text } = await post(path, caller === 'gemini' ? body : { model, ...body })
  expect(expectedStatus === 'either' ? [200, 400] : [expectedStatus]).toContain(status)
  if (status !== 200) expect(rawCallers[caller].error(JSON.parse(text), status).message).not.toBe('')
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
})

test.each([
  ['up-gemini/..', 400],
  ['up-gemini/../../secret', 404], // dots in a path are resolved before it is read, so that the path is another one
  ['up-gemini/%2e%2e/echo', 200], // and this one names the model `echo`
  ['..%2f..%2fadmin', 400],
  ['up-gemini%252Fecho', 400],
  ['up-gemini/ec%00ho', 400],
  ['up-gemini/a:b', 404],
  ['up-gemini/echo:generateContent', 404],
  ['up-gemini%2Fecho', 200],
])('P32: a model name in the path is checked: %s', async (model, status) => {
  const before = harness.upstream.requests.length
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify(contents('user', { text: 'x' }))
  // On a raw socket, because a client would resolve the dots in the path by itself.
  const request = rawPost(`/v1beta/models/${model}:generateContent`, headers, body)
  const answer = await rawRequest(harness.url, request)
  expect(answer.status).toBe(status)
  if (model.includes('%2F')) expect(harness.upstream.requests.at(-1)!.path).toBe('/v1beta/models/echo:generateContent')
  else if (status !== 200) expect(harness.upstream.requests.length).toBe(before)
})

test('an image of megabytes passes in one event of a stream', async () => {
  const data = Buffer.alloc(2_000_000, 7).toString('base64')
  const parts = [{ inlineData: { mimeType: 'image/png', data } }]
  const imageEvent = { candidates: [{ content: { role: 'model', parts } }] }
  const last = { candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP' }] }
  const events = [imageEvent, last].map(one => chunk(`data: ${JSON.stringify(one)}\n\n`))
  harness.upstream.plan(script(streamHead, ...events, end))
  const input = { model: modelOf('gemini'), stream: true }
  const caller = await openRaw(harness.url, requestOf('gemini', key, input)).whole()
  expect([caller.status, caller.text.includes(data), caller.text.includes('"error"')]).toEqual([200, true, false])
})

test.each(dialects)('%s: a deeply nested answer is refused fast', async upstream => {
  const deep = '['.repeat(1_000_000)
  for (const stream of [false, true]) {
    const answer = script(...(stream ? [streamHead, chunk(`data: ${deep}\n\n`), end] : jsonAnswer(200, deep)))
    const input = { model: modelOf(upstream), stream }
    await expectCheap(1_000, async () => {
      harness.upstream.plan(answer)
      expect((await openRaw(harness.url, requestOf('openai-chat', key, input)).whole()).status).toBe(502)
    })
  }
})

describe('the caller gets the same stream for any split and line ending', () => {
  const ids = /(fake|req_|resp_|msg_|call_|chatcmpl-|rs_)\w+|"(created|created_at|completed_at)":\d+/g
  const pairs = dialects.flatMap(caller => dialects.map(upstream => [caller, upstream] as const))

  test.each(pairs)('%s on %s', async (caller, upstream) => {
    const plain = streamed(['Grüße ', '🙂', ' you'])
    const cut = [plain, chunkSizes(1)(plain), chunkSizes(7)(plain)]
    const spelt = [shaped(plain, lineEndings('\r\n'), chunkSizes(3)), shaped(plain, lineEndings('\r'), chunkSizes(2))]
    const results: string[] = []
    for (const one of [...cut, ...spelt]) {
      harness.upstream.plan(one)
      const input = { model: modelOf(upstream), stream: true }
      const { text } = await openRaw(harness.url, requestOf(caller, key, input)).whole()
      const same = caller === upstream ? eventsOfBody(caller, text).join('\n') : withoutComments(text)
      results.push(same.replace(ids, ''))
    }
    expect(new Set(results).size).toBe(1)
    expect(results[0]).toContain('🙂')
  })
})
