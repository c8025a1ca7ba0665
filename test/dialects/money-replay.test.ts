// Answers that are given again: in every dialect, whole and streamed, native and translated, the same bytes and one
// charge. What a caller says of a call for its own books is found in its record.

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
/** Its own upstream, and one of another dialect. */
const ways = dialects.flatMap(caller =>
  ([caller, caller === 'gemini' ? 'anthropic-messages' : 'gemini'] as const).flatMap(upstream =>
    [false, true].map(stream => [caller, upstream, stream] as const),
  ),
)

const once = (): Record<string, string> => ({ 'idempotency-key': crypto.randomUUID() })

test.each(ways)('%s on %s, streamed: %p', async (caller, upstream, stream) => {
  const wanted = requestIn(caller, { model: modelOf(upstream), stream })
  const name = once()
  harness.upstream.plan(answer('Hello', { usage }))
  const first = await send(harness, key, wanted, name)
  const said = await first.text()
  await harness.idle()
  const before = [harness.upstream.requests.length, await harness.balance(key)]
  const again = await send(harness, key, wanted, name)
  expect([again.status, again.headers.get('x-weir-replayed')]).toEqual([200, first.headers.get('x-request-id')])
  expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'))
  expect(withoutComments(await again.text())).toBe(withoutComments(said))
  await harness.idle()
  expect([harness.upstream.requests.length, await harness.balance(key)]).toEqual(before)
  const other = await send(harness, key, { ...wanted, body: `${wanted.body} ` }, name)
  expect(other.status).toBe(422)
})

describe('gemini', () => {
  const { path, body } = requestIn('gemini', { model: modelOf('gemini'), stream: true })
  const asArray = { path: path.replace('?alt=sse', ''), body }

  test('an array is given again as the same array', async () => {
    const name = once()
    harness.upstream.plan(answer('Hello', { usage }))
    const said = await (await send(harness, key, asArray, name)).text()
    await harness.idle()
    const again = await send(harness, key, asArray, name)
    expect([again.status, await again.json()]).toEqual([200, JSON.parse(said)])
  })

  test('a key that was used for one form of an answer is not good for the other, nor for another model', async () => {
    const name = once()
    harness.upstream.plan(answer('Hello', { usage }))
    await (await send(harness, key, asArray, name)).text()
    await harness.idle()
    expect((await send(harness, key, { path, body }, name)).status).toBe(422)
    const other = asArray.path.replace(modelOf('gemini'), modelOf('gemini', 'lorem'))
    expect((await send(harness, key, { path: other, body }, name)).status).toBe(422)
  })
})

interface Note {
  readonly more: object
  readonly user: string | null
  readonly tags: object
}

/** Where each dialect has a place for whom a call is for, and for what its costs are sorted by. */
const notes: Readonly<Record<Dialect, Note>> = {
  'openai-chat': { more: { user: 'u-1', metadata: { team: 'a' } }, user: 'u-1', tags: { team: 'a' } },
  'ark': { more: { user: 'u-1' }, user: 'u-1', tags: {} },
  'openai-responses': { more: { safety_identifier: 'u-1', metadata: { team: 'a' } }, user: 'u-1', tags: { team: 'a' } },
  'anthropic-messages': { more: { metadata: { user_id: 'u-1' } }, user: 'u-1', tags: {} },
  'gemini': { more: { labels: { team: 'a' } }, user: null, tags: { team: 'a' } },
}

test.each(dialects)('%s: its record says whose it is, how it is sorted and by what it was priced', async dialect => {
  const { more, user, tags } = notes[dialect]
  for (const upstream of [dialect, dialect === 'gemini' ? 'ark' : 'gemini'] as const) {
    harness.upstream.plan(answer('Hello', { usage }))
    const wanted = requestIn(dialect, { model: modelOf(upstream), more })
    expect((await send(harness, key, wanted, { 'x-weir-tags': 'mill' })).status).toBe(200)
    await harness.idle()
    const record = harness.records().at(-1)!
    expect(record).toMatchObject({ dialect, end_user: user, provider: `up-${upstream}`, model: 'echo', cost: 180_000 })
    expect(record.price_version).toBeGreaterThan(0)
    expect(JSON.parse(record.tags as string) as object).toEqual({ ...tags, mill: '' })
  }
})
