// Stored responses with the official SDKs, on upstreams that store them and on those that do not.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { bounds } from '../../src/base/bounds.ts'
import { answer, fail, pausedStream } from '../../tools/fake-upstream/answers.ts'
import { says, saysText } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { upstreamKey } from '../support/gateway.ts'
import { modelOf, startDialects } from './upstreams.ts'

/** An upstream that stores responses, one of the dialect that does not, and upstreams of other dialects. */
const models = {
  'a native upstream that keeps it': 'openai/gpt-4o-mini',
  'a native upstream that keeps nothing': modelOf('openai-responses'),
  'chat': modelOf('openai-chat'),
  'Messages': modelOf('anthropic-messages'),
  'Gemini': modelOf('gemini'),
  'Ark': modelOf('ark'),
} as const

const kinds = Object.entries(models)
const withoutStorage = kinds.slice(1)
const sdks = { 'openai 7': OpenAI, 'openai 6': OpenAI6 as unknown as typeof OpenAI } as const

let harness: Harness
let jumpMs = 0
const clock = { nowMs: () => performance.now() + jumpMs, dateMs: () => Date.now() + jumpMs }

beforeAll(async () => {
  harness = await startDialects({ world: { clock } })
})
afterAll(() => harness.stop())

const clientAt = ({ url }: Harness, key: string, Sdk = OpenAI): OpenAI =>
  new Sdk({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 })
const clientOf = (key: string, Sdk = OpenAI): OpenAI => clientAt(harness, key, Sdk)
const client = async (Sdk = OpenAI): Promise<OpenAI> => clientOf(await harness.key(), Sdk)

const statusOf = (request: Promise<unknown>): Promise<unknown> =>
  request.then(
    () => 200,
    (fault: { status?: number; code?: string }) => [fault.status, fault.code],
  )

/** The last request that the upstream received. */
const lastUpstreamBody = ({ upstream } = harness): Record<string, unknown> => {
  const request = upstream.requests.findLast(request => request.method === 'POST')!
  return JSON.parse(Buffer.from(request.body).toString()) as Record<string, unknown>
}

describe.each(Object.entries(sdks))('with %s', (_sdk, Sdk) => {
  test.each(kinds)('P33: a conversation on %s can be continued, retrieved and deleted', async (_kind, model) => {
    const openai = await client(Sdk)
    const first = await openai.responses.create({ model, input: 'My name is Ada Lovelace' })
    const second = await openai.responses.create({ model, input: 'And I', previous_response_id: first.id })
    expect([first.output_text, second.output_text]).toEqual(['My name is Ada Lovelace', 'And I'])
    expect(second.previous_response_id).toBe(first.id)
    expect(second.usage!.input_tokens).toBeGreaterThanOrEqual(12)

    const again = await openai.responses.retrieve(second.id)
    expect([again.id, again.output_text, again.usage]).toEqual([second.id, 'And I', second.usage])
    const items: string[] = []
    for await (const item of openai.responses.inputItems.list(second.id, { order: 'asc', limit: 1 })) {
      items.push(JSON.stringify(item))
    }
    expect(items).toHaveLength(3)
    expect(items[2]).toContain('And I')

    await openai.responses.delete(second.id)
    const follow = { model, input: 'x', previous_response_id: second.id }
    expect(await statusOf(openai.responses.retrieve(second.id))).toEqual([404, 'response_unknown'])
    expect(await statusOf(openai.responses.create(follow))).toEqual([404, 'response_unknown'])
    expect(await statusOf(openai.responses.delete(second.id))).toEqual([404, 'response_unknown'])
  })

  test.each(kinds)('P33: a streamed conversation on %s is stored as well', async (_kind, model) => {
    const openai = await client(Sdk)
    const first = await openai.responses.stream({ model, input: 'one two three' }).finalResponse()
    const following = { model, input: 'four', previous_response_id: first.id }
    const second = await openai.responses.stream(following).finalResponse()
    expect(second.usage!.input_tokens).toBeGreaterThanOrEqual(7)
    expect((await openai.responses.retrieve(first.id)).output_text).toBe('one two three')
  })

  test.each(kinds)('a response of %s can be streamed again', async (_kind, model) => {
    const openai = await client(Sdk)
    const { id } = await openai.responses.create({ model, input: 'say it again' })
    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    for await (const event of await openai.responses.retrieve(id, { stream: true })) events.push(event)
    const numbers = events.map(event => event.sequence_number)
    expect(numbers).toEqual(numbers.map((_, at) => at))
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { id } })
    const rest: number[] = []
    for await (const event of await openai.responses.retrieve(id, { stream: true, starting_after: 3 })) {
      rest.push(event.sequence_number)
    }
    expect(rest).toEqual(numbers.slice(4))
  })
})

describe('a stored response of another account is a 404', () => {
  test.each(kinds)('on %s', async (_kind, model) => {
    const { id } = await (await client()).responses.create({ model, input: 'secret' })
    const other = await client()
    for (const name of [id, 'resp_nobody', 'x'.repeat(300)]) {
      const all: unknown[] = await Promise.all([
        statusOf(other.responses.retrieve(name)),
        statusOf(other.responses.delete(name)),
        statusOf(other.responses.cancel(name)),
        statusOf(other.responses.inputItems.list(name) as unknown as Promise<unknown>),
        statusOf(other.responses.create({ model, input: 'x', previous_response_id: name })),
      ])
      expect(all).toEqual(all.map(() => [404, 'response_unknown']))
    }
  })

  test('and nothing goes upstream or is held', async () => {
    const openai = await client()
    const before = harness.upstream.requests.length
    await statusOf(openai.responses.create({ model: models.chat, input: 'x', previous_response_id: 'resp_nobody' }))
    expect(harness.upstream.requests.length).toBe(before)
    expect(harness.openHolds()).toBe(0)
  })
})

test.each(kinds)('a response with store: false is not stored, on %s', async (_kind, model) => {
  const openai = await client()
  const { id } = await openai.responses.create({ model, input: 'x', store: false })
  expect(await statusOf(openai.responses.retrieve(id))).toEqual([404, 'response_unknown'])
})

test('P33: an upstream that stored a response gets its id, and other upstreams get the whole history', async () => {
  const openai = await client()
  const native = models['a native upstream that keeps it']
  const first = await openai.responses.create({ model: native, input: 'one', instructions: 'be brief' })
  const second = await openai.responses.create({ model: native, input: 'two', previous_response_id: first.id })
  expect(lastUpstreamBody()).toMatchObject({ input: 'two', previous_response_id: first.id })
  await openai.responses.create({ model: models.chat, input: 'three', previous_response_id: second.id })
  const messages = lastUpstreamBody().messages as { role: string; content: unknown }[]
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
  const third = await openai.responses.create({
    model: models['a native upstream that keeps nothing'],
    input: 'three',
    previous_response_id: second.id,
  })
  const request = lastUpstreamBody()
  expect(request.previous_response_id).toBeUndefined()
  expect(request.instructions).toBeUndefined()
  expect((request.input as unknown[]).length).toBe(5)
  const fourth = await openai.responses.create({ model: native, input: 'four', previous_response_id: third.id })
  expect((lastUpstreamBody().input as unknown[]).length).toBe(7)
  expect(fourth.previous_response_id).toBe(third.id)
  await openai.responses.create({ model: native, input: 'five', previous_response_id: fourth.id })
  expect(lastUpstreamBody()).toMatchObject({ input: 'five', previous_response_id: fourth.id })
})

test('two calls may follow the same response at once, and each is charged for its own input', async () => {
  const key = await harness.key()
  const openai = clientOf(key)
  const { id } = await openai.responses.create({ model: models.chat, input: 'one two' })
  const follow = (input: string) => openai.responses.create({ model: models.chat, input, previous_response_id: id })
  const [a, b] = await Promise.all([follow('left'), follow('right')])
  expect([a.output_text, b.output_text]).toEqual(['left', 'right'])
  expect([a.usage!.input_tokens, b.usage!.input_tokens]).toEqual([5, 5])
  await harness.idle()
  const spent = [2, 2, 5, 1, 5, 1].reduce((sum, tokens, at) => sum + tokens * (at % 2 === 0 ? 1 : 2), 0)
  expect(Number((await harness.balance(key)).balance)).toBeCloseTo(100 - spent / 1e6, 9)
})

test.each(withoutStorage)('a tool result finds its call in the previous response, on %s', async (_kind, model) => {
  const openai = await client()
  const tools = [{ type: 'function' as const, name: 'clock', parameters: { type: 'object' }, strict: false }]
  const first = await openai.responses.create({ model, input: 'use clock', tools })
  const call = first.output.find(item => item.type === 'function_call')!
  const output = { type: 'function_call_output' as const, call_id: call.call_id, output: 'noon' }
  const second = await openai.responses.create({ model, input: [output], tools, previous_response_id: first.id })
  expect(second.output_text).toBe('use clock')
})

test('an item of a stored response can be referenced by its id', async () => {
  const openai = await client()
  const first = await openai.responses.create({ model: models.chat, input: 'one' })
  const named = { type: 'item_reference' as const, id: first.output[0]!.id! }
  const input = [named, { role: 'user' as const, content: 'two' }]
  await openai.responses.create({ model: models.chat, input })
  expect(lastUpstreamBody().messages).toMatchObject([{ role: 'assistant' }, { role: 'user', content: 'two' }])
})

test('a compacted conversation is expanded for every upstream, and only for its account', async () => {
  const openai = await client()
  const input = [
    { role: 'user' as const, content: 'one' },
    { role: 'assistant' as const, content: 'two' },
  ]
  const compacted = await openai.responses.compact({ model: models.chat, input })
  expect(compacted).toMatchObject({ object: 'response.compaction', usage: { total_tokens: 0 } })
  expect(JSON.stringify(compacted)).not.toContain('"two"')
  const more = [...(compacted.output as never[]), { role: 'user' as const, content: 'three' }]
  for (const [, model] of kinds) {
    const { usage } = await openai.responses.create({ model, input: more })
    expect(usage!.input_tokens).toBe(3)
  }
  const foreignUse = (await client()).responses.create({ model: models.chat, input: more })
  expect(await statusOf(foreignUse)).toEqual([400, 'field_invalid'])
})

test('a conversation id of an upstream is refused', async () => {
  const request = (await client()).responses.create({ model: 'openai/gpt-4o-mini', input: 'x', conversation: 'conv_1' })
  expect(await statusOf(request)).toEqual([400, 'field_invalid'])
})

test('a caller that disconnects is charged for the history that the upstream has stored', async () => {
  const openai = await client()
  const model = 'openai/gpt-4o-mini'
  const never = Promise.withResolvers<void>()
  harness.upstream.plan(answer('x', { usage: { input: 1_000, output: 10 } }), pausedStream(['a', 'b'], never.promise))
  const { id } = await openai.responses.create({ model, input: 'long ago' })
  const following = { model, input: 'x', previous_response_id: id, stream: true } as const
  for await (const event of await openai.responses.create(following)) {
    if (event.type === 'response.output_text.delta') break
  }
  // When other requests are answered, the gateway has noticed that the caller left. It reads on for the report then.
  for (let round = 0; round < 5; round++) await fetch(`${harness.url}/health/live`)
  jumpMs += bounds.callerGoneMsMax
  await harness.idle()
  const { outcome, input_tokens } = harness.lastRecord()!
  expect(outcome).toBe('client_left')
  expect(input_tokens).toBeGreaterThan(1_010)
  never.resolve()
})

describe('P33: with several credentials', () => {
  const model = 'openai/gpt-4o-mini'
  const credentials = ({ upstream }: Harness): string[] =>
    upstream.requests.map(({ headers }) => headers.get('authorization')!.slice('Bearer '.length))

  test('a response is retrieved and followed only with the credential that made it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-pins-'))
    const two = await startDialects({ folder, upstreamKeys: 'sk-one,sk-two', world: { random: () => 0 } })
    const key = await two.key()
    const openai = clientAt(two, key)
    two.upstream.plan(fail(500))
    const first = await openai.responses.create({ model, input: 'one' })
    const second = await openai.responses.create({ model, input: 'two', previous_response_id: first.id })
    await openai.responses.retrieve(second.id)
    await openai.responses.inputItems.list(second.id)
    await openai.responses.create({ model, input: 'by itself' })
    expect(credentials(two)).toEqual(['sk-one', 'sk-two', 'sk-two', 'sk-two', 'sk-two', 'sk-one'])
    two.upstream.plan(fail(500), fail(500))
    const third = openai.responses.create({ model, input: 'two', previous_response_id: first.id })
    expect(await statusOf(third)).toEqual([502, 'upstream_unusable'])
    await two.stop()

    const one = await startDialects({ folder, upstreamKeys: 'sk-one' })
    const later = clientAt(one, key)
    expect((await later.responses.retrieve(second.id)).output_text).toBe('two')
    const fourth = await later.responses.create({ model, input: 'three', previous_response_id: second.id })
    expect(fourth.usage!.input_tokens).toBe(5)
    expect((lastUpstreamBody(one).input as unknown[]).length).toBe(5)
    await later.responses.delete(second.id)
    expect(await statusOf(later.responses.retrieve(second.id))).toEqual([404, 'response_unknown'])
    await one.stop()
    rmSync(folder, { recursive: true, force: true })
  })
})

test.each([
  ['a page with its credential', saysText(`<html>Bearer ${upstreamKey}</html>`, 'text/html')],
  ['nothing', saysText('', 'application/json')],
  ['half an object', saysText('{"id":', 'application/json')],
  ['an error', says({ error: { message: `no such key ${upstreamKey}` } })],
])('an upstream that answers %s for a stored response is unusable', async (what, answered) => {
  const openai = await client()
  const { id } = await openai.responses.create({ model: 'openai/gpt-4o-mini', input: 'one' })
  const asks = [
    () => openai.responses.retrieve(id),
    () => openai.responses.inputItems.list(id),
    () => openai.responses.cancel(id),
    () => openai.responses.delete(id),
  ]
  for (const ask of asks.slice(0, what === 'nothing' ? 3 : 4)) {
    harness.upstream.plan(answered)
    expect(await statusOf(ask() as Promise<unknown>)).toEqual([502, 'upstream_unusable'])
  }
  expect((await openai.responses.retrieve(id)).id).toBe(id)
})

test('a response is a 404 after its retention time', async () => {
  let laterMs = 0
  const clock = { nowMs: () => performance.now(), dateMs: () => Date.now() + laterMs }
  const shortRetention = await startDialects({ world: { clock }, env: { WEIR_RESPONSES_DAYS: '2' } })
  const openai = clientAt(shortRetention, await shortRetention.key())
  const expired = await Promise.all(Object.values(models).map(model => openai.responses.create({ model, input: 'x' })))
  laterMs = 2 * 24 * 3_600_000 + 1
  for (const { id } of expired) {
    expect(await statusOf(openai.responses.retrieve(id))).toEqual([404, 'response_unknown'])
    const follow = { model: models.chat, input: 'x', previous_response_id: id }
    expect(await statusOf(openai.responses.create(follow))).toEqual([404, 'response_unknown'])
  }
  await shortRetention.stop()
})

test('when the storage is full, the oldest responses of the account with the most are removed', async () => {
  const small = await startDialects({ env: { WEIR_RESPONSES_MB: '1' } })
  const [alice, bob] = [clientAt(small, await small.key()), clientAt(small, await small.key())]
  const make = async (openai: OpenAI): Promise<string> =>
    (await openai.responses.create({ model: modelOf('openai-chat', 'lorem'), input: 'word '.repeat(60_000) })).id
  const first = await make(bob)
  const [oldest, next] = [await make(alice), await make(alice)]
  await make(alice)
  expect(await statusOf(alice.responses.retrieve(oldest))).toEqual([404, 'response_unknown'])
  for (const [openai, id] of [
    [bob, first],
    [alice, next],
  ] as const) {
    expect(await statusOf(openai.responses.retrieve(id))).toBe(200)
  }
  await small.stop()
})

describe('a response that is too large to be stored', () => {
  const huge = 'word '.repeat(1_800_000)

  test('is answered, and the answer reports the loss', async () => {
    const openai = await client()
    const request = { model: modelOf('openai-chat', 'lorem'), input: huge }
    const { data, response } = await openai.responses.create(request).withResponse()
    expect(data.output_text).toStartWith('Lorem')
    expect(response.headers.get('x-weir-loss')).toBe('store')
    expect(await statusOf(openai.responses.retrieve(data.id))).toEqual([404, 'response_unknown'])
    const alone = openai.responses.create({ ...request, background: true })
    expect(await statusOf(alone)).toEqual([413, 'request_too_large'])
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
  })

  test('cannot be followed at another upstream', async () => {
    const openai = await client()
    const { id } = await openai.responses.create({ model: 'openai/gpt-4.1-mini', input: huge, max_output_tokens: 16 })
    const follow = (model: string) => openai.responses.create({ model, input: 'x', previous_response_id: id })
    expect(await statusOf(follow(models.chat))).toEqual([400, 'response_unfit'])
  })
})

test('errors of stored responses have the format of their dialect, and reads have no stage headers', async () => {
  const key = await harness.key()
  const headers = { authorization: `Bearer ${key}` }
  const ark = await fetch(`${harness.url}/api/v3/responses/resp_nobody`, { headers })
  expect([ark.status, await ark.json()]).toMatchObject([404, { error: { type: 'NotFound' } }])
  const { id } = await clientOf(key).responses.create({ model: models.chat, input: 'x' })
  for (const path of [id, `${id}/input_items`, `${id}?stream=true`]) {
    const retrieved = await fetch(`${harness.url}/v1/responses/${path}`, { headers })
    expect(retrieved.status).toBe(200)
    expect([...retrieved.headers.keys()].filter(name => name.startsWith('x-pipeline'))).toEqual([])
    expect(retrieved.headers.get('x-request-id')).toStartWith('req_')
  }
  for (const query of ['?limit=0', '?limit=101', '?limit=x', '?order=up', '?after=nothing']) {
    const listed = await fetch(`${harness.url}/v1/responses/${id}/input_items${query}`, { headers })
    expect([query, listed.status]).toEqual([query, 400])
  }
  const put = await fetch(`${harness.url}/v1/responses/${id}`, { method: 'POST', headers })
  expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, DELETE'])
})
