// The pitfalls of gateways that are of no dialect but of every pair. Each pitfall that we know of has a test with its
// name somewhere; the last one here looks for them all.

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

async function groundFor(from: Dialect, upstream: Dialect) {
  const client = clientOf(from)
  return { harness, client, upstream, session: client.connect(harness.url, await harness.key()) }
}

describe.each(pairs)('%s on %s', (from, upstream) => {
  test('P9: a stream that breaks off raises an error', async () => {
    const ground = await groundFor(from, upstream)
    harness.upstream.plan(resetMidStream(['He', 'llo']))
    const { message } = await faultIn(ground, 'stream')
    expect(message).toMatch(/broke off|upstream|provider/i)
  })

  test('P10: a stream that says nothing is no empty answer', async () => {
    const ground = await groundFor(from, upstream)
    harness.upstream.plan(streamThrough(frames => filterFrames(['open'], frames), [], { ending: [close] }))
    expect(await faultIn(ground, 'stream')).toMatchObject({ status: 502 })
  })

  test('P18: who leaves pays for what was written', async () => {
    const { session } = await groundFor(from, upstream)
    const leaving = new AbortController()
    const wish = { model: modelOf(upstream, 'slow'), turns: [session.user('Hello')], signal: leaving.signal }
    await session.ask('stream', { ...wish, heard: () => leaving.abort() }).catch(() => {})
    await harness.idle()
    const { outcome, usage_source: source, output_tokens: output, cost } = harness.records().at(-1)!
    expect(outcome).toBe('client_left')
    // On a slow machine the model seems to have thought for a while, and is read on to its report.
    expect(source).toBeOneOf(['estimated', 'reported'])
    expect(Number(output)).toBeGreaterThan(0)
    expect(Number(cost)).toBeGreaterThan(0)
  })
})

test('P31: how an upstream is signed is its own setting, and no header of the caller decides the dialect', async () => {
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

/** Each at an upstream of its own, which rests afterwards. */
test.each(dialects.map(dialect => [dialect]))('P38: %s callers are not put to sleep for a day', async dialect => {
  const key = await harness.key()
  harness.upstream.plan(fail(429, { retryAfter: '86400' }))
  const [path, body] = bodies[dialect](modelOf(dialect))
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const answer = await fetch(harness.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  expect([503, 529]).toContain(answer.status)
  expect(Number(answer.headers.get('retry-after') ?? 0)).toBeLessThanOrEqual(60)
  expect(Number(answer.headers.get('retry-after-ms') ?? 0)).toBeLessThanOrEqual(60_000)
})

const messages = [{ role: 'user', content: 'Hi' }]
const bodies: Readonly<Record<Dialect, (model: string) => readonly [path: string, body: object]>> = {
  'openai-chat': model => ['/v1/chat/completions', { model, messages }],
  'openai-responses': model => ['/v1/responses', { model, input: 'Hi' }],
  'anthropic-messages': model => ['/v1/messages', { model, messages, max_tokens: 5 }],
  'gemini': model => [`/v1beta/models/${model}:generateContent`, { contents: [{ parts: [{ text: 'Hi' }] }] }],
  'ark': model => ['/api/v3/chat/completions', { model, messages }],
}

const pitfalls = 38

test(`each of the ${pitfalls} pitfalls has a test that bears its name`, async () => {
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
