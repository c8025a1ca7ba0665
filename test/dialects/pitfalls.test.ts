// Known pitfalls of gateways that concern every pair of dialects. Every known pitfall has a test with its number; the last
// test here checks that.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fail, filterFrames, resetMidStream, streamThrough } from '../../tools/fake-upstream/answers.ts'
import { close } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import type { Client } from './clients/client.ts'
import { clients } from './clients/list.ts'
import { faultIn } from './features.ts'
import { startMatrix } from './matrix.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf } from './upstreams.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startMatrix()
})
afterAll(() => harness.stop())

const clientOf = (dialect: Dialect): Client => clients.find(client => client.dialect === dialect)!
const pairs = dialects.flatMap(from => dialects.map(to => [from, to] as const))

async function contextFor(from: Dialect, upstream: Dialect) {
  const client = clientOf(from)
  return { harness, client, upstream, session: client.connect(harness.url, await harness.key()) }
}

describe.each(pairs)('%s on %s', (from, upstream) => {
  test('P9: a stream that breaks off raises an error', async () => {
    const context = await contextFor(from, upstream)
    harness.upstream.plan(resetMidStream(['He', 'llo']))
    const { message } = await faultIn(context, 'stream')
    expect(message).toMatch(/broke off|upstream|provider/i)
  })

  test('P10: a stream without content is an error, not an empty answer', async () => {
    const context = await contextFor(from, upstream)
    harness.upstream.plan(streamThrough(frames => filterFrames(['open'], frames), [], { ending: [close] }))
    expect(await faultIn(context, 'stream')).toMatchObject({ status: 502 })
  })

  test('P18: a caller that disconnects pays for what was generated', async () => {
    const { session } = await contextFor(from, upstream)
    const abortController = new AbortController()
    const options = { model: modelOf(upstream, 'slow'), turns: [session.user('Hello')], signal: abortController.signal }
    await session.ask('stream', { ...options, onContent: () => abortController.abort() }).catch(() => {})
    await harness.idle()
    const { outcome, usage_source: source, output_tokens: output, cost } = harness.lastRecord()!
    expect(outcome).toBe('client_left')
    // On a slow machine the model seems to think for a while, so the gateway reads on until the usage is reported.
    expect(source).toBeOneOf(['estimated', 'reported'])
    expect(Number(output)).toBeGreaterThan(0)
    expect(Number(cost)).toBeGreaterThan(0)
  })
})

test('P31: the provider file decides how requests are signed, and no header of the caller decides the dialect', async () => {
  const key = await harness.key()
  const body = JSON.stringify({ model: modelOf('anthropic-messages'), messages: [{ role: 'user', content: 'Hi' }] })
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const answer = await fetch(`${harness.url}/v1/chat/completions`, { method: 'POST', headers, body })
  expect(await answer.json()).toMatchObject({ object: 'chat.completion' })
  const sent = harness.upstream.requests.at(-1)!.headers
  expect(sent.get('authorization')).toBe('Bearer sk-anthropic-messages')
  expect(sent.has('x-api-key')).toBe(false)
  const models = await fetch(`${harness.url}/v1/models`, { headers })
  expect(await models.json()).toMatchObject({ object: 'list' })
})

/** Each dialect has an upstream of its own, because the channel is unavailable afterwards. */
test.each(dialects.map(dialect => [dialect]))(
  'P38: %s callers get a Retry-After of at most a minute, also if the upstream asks for a day',
  async dialect => {
    const key = await harness.key()
    harness.upstream.plan(fail(429, { retryAfter: '86400' }))
    const [path, body] = bodies[dialect](modelOf(dialect))
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await fetch(harness.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    expect([503, 529]).toContain(answer.status)
    expect(Number(answer.headers.get('retry-after') ?? 0)).toBeLessThanOrEqual(60)
    expect(Number(answer.headers.get('retry-after-ms') ?? 0)).toBeLessThanOrEqual(60_000)
  },
)

const messages = [{ role: 'user', content: 'Hi' }]
const bodies: Readonly<Record<Dialect, (model: string) => readonly [path: string, body: object]>> = {
  'openai-chat': model => ['/v1/chat/completions', { model, messages }],
  'openai-responses': model => ['/v1/responses', { model, input: 'Hi' }],
  'anthropic-messages': model => ['/v1/messages', { model, messages, max_tokens: 5 }],
  'gemini': model => [`/v1beta/models/${model}:generateContent`, { contents: [{ parts: [{ text: 'Hi' }] }] }],
  'ark': model => ['/api/v3/chat/completions', { model, messages }],
}

const pitfalls = 38

test(`each of the ${pitfalls} pitfalls has a test with its number in the name`, async () => {
  const root = join(import.meta.dir, '..', '..')
  const named = new Set<string>()
  for (const folder of ['src', 'tools', 'test']) {
    for await (const path of new Bun.Glob(`${folder}/**/*.test.ts`).scan(root)) {
      const names = readFileSync(join(root, path), 'utf8').matchAll(/[([]\s*['`](P\d+(?:, P\d+)*): /g)
      for (const [, list] of names) for (const name of list!.split(', ')) named.add(name)
    }
  }
  const wanted = Array.from({ length: pitfalls }, (_, at) => `P${at + 1}`)
  expect(wanted.filter(name => !named.has(name))).toEqual([])
})
