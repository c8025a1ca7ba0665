// Replayed answers have the same bytes and one charge, in every dialect, plain and streamed, native and translated. The end
// user and the tags of a call are in its record.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { answer } from '../../tools/fake-upstream/answers.ts'
import { withoutComments } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { requestIn, send } from './money-calls.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key({ qpm: 100_000 })
})
afterAll(() => harness.stop())

const usage = { input: 100, output: 40 }
/** Each caller with an upstream of its own dialect and one of another. */
const ways = dialects.flatMap(caller =>
  ([caller, caller === 'gemini' ? 'anthropic-messages' : 'gemini'] as const).flatMap(upstream =>
    [false, true].map(stream => [caller, upstream, stream] as const),
  ),
)

const freshIdempotencyKey = (): Record<string, string> => ({ 'idempotency-key': crypto.randomUUID() })

test.each(ways)('an answer of %s on %s is replayed, streamed: %p', async (caller, upstream, stream) => {
  const request = requestIn(caller, { model: modelOf(upstream), stream })
  const name = freshIdempotencyKey()
  harness.upstream.plan(answer('Hello', { usage }))
  const first = await send(harness, key, request, name)
  const firstText = await first.text()
  await harness.idle()
  const before = [harness.upstream.requests.length, await harness.balance(key)]
  const replayed = await send(harness, key, request, name)
  expect([replayed.status, replayed.headers.get('x-weir-replayed')]).toEqual([200, first.headers.get('x-request-id')])
  expect(replayed.headers.get('content-type')).toBe(first.headers.get('content-type'))
  expect(withoutComments(await replayed.text())).toBe(withoutComments(firstText))
  await harness.idle()
  expect([harness.upstream.requests.length, await harness.balance(key)]).toEqual(before)
  const other = await send(harness, key, { ...request, body: `${request.body} ` }, name)
  expect(other.status).toBe(422)
})

describe('an idempotency key of gemini', () => {
  const { path, body } = requestIn('gemini', { model: modelOf('gemini'), stream: true })
  const asArray = { path: path.replace('?alt=sse', ''), body }

  test('replays an array as the same array', async () => {
    const name = freshIdempotencyKey()
    harness.upstream.plan(answer('Hello', { usage }))
    const firstText = await (await send(harness, key, asArray, name)).text()
    await harness.idle()
    const replayed = await send(harness, key, asArray, name)
    expect([replayed.status, await replayed.json()]).toEqual([200, JSON.parse(firstText)])
  })

  test('that was used for one stream format is refused for the other, and for another model', async () => {
    const name = freshIdempotencyKey()
    harness.upstream.plan(answer('Hello', { usage }))
    await (await send(harness, key, asArray, name)).text()
    await harness.idle()
    expect((await send(harness, key, { path, body }, name)).status).toBe(422)
    const other = asArray.path.replace(modelOf('gemini'), modelOf('gemini', 'lorem'))
    expect((await send(harness, key, { path: other, body }, name)).status).toBe(422)
  })
})

interface Attribution {
  readonly more: object
  readonly user: string | null
  readonly tags: object
}

/** The fields of each dialect for the end user and for tags. */
const attributions: Readonly<Record<Dialect, Attribution>> = {
  'openai-chat': { more: { user: 'u-1', metadata: { team: 'a' } }, user: 'u-1', tags: { team: 'a' } },
  'ark': { more: { user: 'u-1' }, user: 'u-1', tags: {} },
  'openai-responses': { more: { safety_identifier: 'u-1', metadata: { team: 'a' } }, user: 'u-1', tags: { team: 'a' } },
  'anthropic-messages': { more: { metadata: { user_id: 'u-1' } }, user: 'u-1', tags: {} },
  'gemini': { more: { labels: { team: 'a' } }, user: null, tags: { team: 'a' } },
}

test.each(dialects)('%s: the record has the end user, the tags and the price version', async dialect => {
  const { more, user, tags } = attributions[dialect]
  for (const upstream of [dialect, dialect === 'gemini' ? 'ark' : 'gemini'] as const) {
    harness.upstream.plan(answer('Hello', { usage }))
    const request = requestIn(dialect, { model: modelOf(upstream), more })
    expect((await send(harness, key, request, { 'x-weir-tags': 'mill' })).status).toBe(200)
    await harness.idle()
    const record = harness.lastRecord()!
    expect(record).toMatchObject({ dialect, end_user: user, provider: `up-${upstream}`, model: 'echo', cost: 180_000 })
    expect(record.price_version).toBeGreaterThan(0)
    expect(JSON.parse(record.tags as string) as object).toEqual({ ...tags, mill: '' })
  }
})
