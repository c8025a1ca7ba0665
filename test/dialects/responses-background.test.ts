// Background responses: returned at once, polled, streamed, cancelled, and failed cleanly after a crash.

import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { bounds } from '../../src/base/bounds.ts'
import { Followers } from '../../src/features/stored-responses/followers.ts'
import { fail, pausedStream, plain, streamed } from '../../tools/fake-upstream/answers.ts'
import { after } from '../forwarding/wire.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { modelOf, startDialects } from './upstreams.ts'

const models = {
  'a native upstream that keeps it': 'openai/gpt-4o-mini',
  'a native upstream that keeps nothing': modelOf('openai-responses'),
  'chat': modelOf('openai-chat'),
  'Messages': modelOf('anthropic-messages'),
} as const
const kinds = Object.entries(models)

let harness: Harness

beforeAll(async () => {
  harness = await startDialects()
})
afterAll(() => harness.stop())

const clientAt = ({ url }: Harness, key: string, Sdk = OpenAI): OpenAI =>
  new Sdk({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 })
const client = async (): Promise<OpenAI> => clientAt(harness, await harness.key())

async function waitUntilOver(openai: OpenAI, id: string): Promise<OpenAI.Responses.Response> {
  for (;;) {
    const response = await openai.responses.retrieve(id)
    if (response.status !== 'queued' && response.status !== 'in_progress') return response
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

const inBackground = { input: 'Hello river', background: true } as const
type Event = OpenAI.Responses.ResponseStreamEvent

describe.each([OpenAI, OpenAI6 as unknown as typeof OpenAI])('a background response with the OpenAI SDK', Sdk => {
  test.each(kinds)('is queued, completed and retrieved, on %s', async (_kind, model) => {
    const key = await harness.key()
    const openai = clientAt(harness, key, Sdk)
    const { data, response } = await openai.responses.create({ model, ...inBackground }).withResponse()
    expect(data).toMatchObject({ status: 'queued', background: true, output: [], model })
    expect(response.headers.get('x-pipeline-route')).toStartWith('pass')
    expect(response.headers.get('x-pipeline-adapter')).toBeNull() // it has neither succeeded nor failed yet
    const done = await waitUntilOver(openai, data.id)
    expect(done).toMatchObject({ id: data.id, status: 'completed', background: true, output_text: 'Hello river' })
    const later = await openai.responses.create({ model, input: 'and then?', previous_response_id: data.id })
    expect(later.previous_response_id).toBe(data.id)
    await openai.responses.delete(data.id)
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.records().at(-2)).toMatchObject({ outcome: 'completed', input_tokens: 2, output_tokens: 2 })
  })
})

test('a background response in progress has the status in_progress', async () => {
  const openai = await client()
  const opened = Promise.withResolvers<void>()
  harness.upstream.plan(after(opened.promise, plain('a river')))
  const received = harness.upstream.nextRequest()
  const { id } = await openai.responses.create({ model: models.chat, ...inBackground })
  await received
  expect((await openai.responses.retrieve(id)).status).toBe('in_progress')
  opened.resolve()
  expect((await waitUntilOver(openai, id)).output_text).toBe('a river')
})

test.each(kinds)(
  'the events of a background response can be read by a second reader from any position, on %s',
  async (_kind, model) => {
    const openai = await client()
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    harness.upstream.plan(
      pausedStream(
        ['one ', 'two ', 'three'],
        gates.map(({ promise }) => promise),
      ),
    )
    const asked = openai.responses.create({ model, ...inBackground, stream: true })
    const { data: firstReader, response } = await asked.withResponse()
    expect(response.headers.get('x-pipeline-adapter')).toBeNull()
    let id = ''
    let last = -1
    for await (const event of firstReader) {
      if (event.type === 'response.created') id = event.response.id
      last = event.sequence_number
      if (event.type === 'response.output_text.delta') break
    }
    const secondReader = openai.responses.retrieve(id, { stream: true, starting_after: last })
    gates[0]!.resolve()
    const rest: Event[] = []
    for await (const event of await secondReader) {
      rest.push(event)
      gates[1]!.resolve()
    }
    expect(rest.map(event => event.sequence_number)).toEqual(rest.map((_, at) => last + 1 + at))
    expect(rest.at(-1)).toMatchObject({ type: 'response.completed', response: { id, background: true } })
    await harness.idle()
    const replayed: Event[] = []
    for await (const event of await openai.responses.retrieve(id, { stream: true, starting_after: last })) {
      replayed.push(event)
    }
    expect(replayed).toEqual(rest)
    const whole = await openai.responses.retrieve(id)
    expect([whole.status, whole.output_text]).toEqual(['completed', 'one two three'])
    expect(harness.openHolds()).toBe(0)
  },
)

test.each([true, false])(
  'a cancelled background response is charged like a call whose caller disconnected, streamed %p',
  async stream => {
    const key = await harness.key()
    const openai = clientAt(harness, key)
    const never = Promise.withResolvers<void>()
    const script = stream ? pausedStream(['one ', 'two'], never.promise) : after(never.promise, plain('x'))
    harness.upstream.plan(script)
    const received = harness.upstream.nextRequest()
    let id = ''
    if (stream) {
      const events = await openai.responses.create({ model: models.chat, ...inBackground, stream: true })
      for await (const event of events) {
        if (event.type === 'response.created') id = event.response.id
        if (event.type === 'response.output_text.delta') break
      }
    } else {
      id = (await openai.responses.create({ model: models.chat, ...inBackground })).id
      await received
    }
    const cancelled = await openai.responses.cancel(id)
    expect(cancelled).toMatchObject({ id, status: 'cancelled', error: null, output: [] })
    expect(await openai.responses.cancel(id)).toMatchObject({ status: 'cancelled' })
    expect((await openai.responses.retrieve(id)).status).toBe('cancelled')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left', status: 499 })
    expect(harness.openHolds()).toBe(0)
    expect((await harness.balance(key)).held).toBe('0.00')
    never.resolve()
  },
)

test('a background response whose upstream fails is failed and free', async () => {
  const key = await harness.key()
  const openai = clientAt(harness, key)
  harness.upstream.plan(fail(500))
  const { id } = await openai.responses.create({ model: models.chat, ...inBackground })
  const failed = await waitUntilOver(openai, id)
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
  const events: Event[] = []
  for await (const event of await openai.responses.retrieve(id, { stream: true })) events.push(event)
  expect(events.at(-1)!.type).toBe('response.failed')
  await harness.idle()
  expect(await harness.balance(key)).toMatchObject({ balance: '100.00', held: '0.00' })
})

const refusal = (request: Promise<unknown>): Promise<unknown> =>
  request.then(
    () => 200,
    (fault: { status: number; code: string }) => [fault.status, fault.code],
  )

test('a background response with too many events is ended, and its content is charged', async () => {
  const openai = await client()
  const piece = 'word '.repeat(100_000)
  const pieces = Array.from({ length: (2 * bounds.backgroundEventsBytesMax) / piece.length }, () => piece)
  harness.upstream.plan(streamed(pieces))
  const model = modelOf('openai-responses')
  const events = await openai.responses.create({ model, ...inBackground, stream: true })
  const id = await events[Symbol.asyncIterator]()
    .next()
    .then(({ value }) => (value as { response: { id: string } }).response.id)
  expect(await waitUntilOver(openai, id)).toMatchObject({ status: 'failed' })
  await harness.idle()
  expect(harness.lastRecord()).toMatchObject({ outcome: 'over_bound', rule: 'over_bound_answered' })
  expect(harness.openHolds()).toBe(0)
})

test.each(kinds)(
  'a background response that is too large to be stored with its input is failed, on %s',
  async (_, model) => {
    const openai = await client()
    const half = 'word '.repeat((0.6 * bounds.storedResponseBytesMax) / 5)
    harness.upstream.plan(plain(half))
    const { id } = await openai.responses.create({ model, input: half, background: true })
    expect(await waitUntilOver(openai, id)).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'The response and its input are too large to be stored: at most 8 MiB.' },
    })
    await harness.idle()
    expect([harness.lastRecord(), harness.openHolds()]).toMatchObject([{ outcome: 'completed' }, 0])
  },
)

test('store: false with background, and the cancellation of a foreground response, are refused', async () => {
  const openai = await client()
  const model = models.chat
  const unkept = openai.responses.create({ model, ...inBackground, store: false })
  expect(await refusal(unkept)).toEqual([400, 'field_invalid'])
  const { id } = await openai.responses.create({ model, input: 'x' })
  expect(await refusal(openai.responses.cancel(id))).toEqual([400, 'response_unfit'])
})

test('an unfinished background response cannot be followed, and ends when it is deleted', async () => {
  const openai = await client()
  const never = Promise.withResolvers<void>()
  harness.upstream.plan(after(never.promise, plain('x')))
  const received = harness.upstream.nextRequest()
  const { id } = await openai.responses.create({ model: models.chat, ...inBackground })
  await received // else the script could be left for the next test
  const follow = openai.responses.create({ model: models.chat, input: 'x', previous_response_id: id })
  expect(await refusal(follow)).toEqual([400, 'response_unfit'])
  await openai.responses.delete(id)
  await harness.idle()
  expect(await refusal(openai.responses.retrieve(id))).toEqual([404, 'response_unknown'])
  never.resolve()
})

test('background responses of one account are limited, and other accounts are not affected', async () => {
  const [openai, other] = [await client(), await client()]
  const ends = Promise.withResolvers<void>()
  const many = bounds.backgroundCallsOfAccountMax
  harness.upstream.plan(...Array.from({ length: many }, () => after(ends.promise, plain('x'))))
  const model = models.chat
  const all = await Promise.all(Array.from({ length: many }, () => openai.responses.create({ model, ...inBackground })))
  expect(await refusal(openai.responses.create({ model, ...inBackground }))).toEqual([503, 'overloaded'])
  expect((await other.responses.create({ model, ...inBackground })).status).toBe('queued')
  ends.resolve()
  for (const { id } of all) expect((await waitUntilOver(openai, id)).status).toBe('completed')
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
})

describe('background responses of a gateway that stops', () => {
  const model = models.chat

  test('are failed and settled, and can be retrieved after the restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-background-'))
    const first = await startDialects({ folder, env: { WEIR_DRAIN_SECONDS: '0' } })
    const key = await first.key()
    const never = Promise.withResolvers<void>()
    const before = await clientAt(first, key).responses.create({ model: models.Messages, input: 'x' })
    first.upstream.plan(after(never.promise, plain('x')))
    const { id } = await clientAt(first, key).responses.create({ model, ...inBackground })
    void first.gateway.drain()
    await first.stop()
    const second = await startDialects({ folder })
    const openai = clientAt(second, key)
    expect(await openai.responses.retrieve(id)).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
    const following = { model, input: 'two', previous_response_id: before.id }
    expect((await openai.responses.create(following)).usage!.input_tokens).toBe(3)
    expect(second.openHolds()).toBe(0)
    await second.stop()
    rmSync(folder, { recursive: true, force: true })
    never.resolve()
  })

  test('by a crash are failed after the restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-background-'))
    const key = await harness.key()
    const never = Promise.withResolvers<void>()
    harness.upstream.plan(after(never.promise, plain('x')))
    const received = harness.upstream.nextRequest()
    const { id } = await clientAt(harness, key).responses.create({ model, ...inBackground })
    await received
    cpSync(harness.folder, folder, { recursive: true, filter: path => !path.endsWith('.sock') })
    const second = await startDialects({ folder })
    expect(await clientAt(second, key).responses.retrieve(id)).toMatchObject({ status: 'failed', output: [] })
    expect(second.openHolds()).toBe(0)
    await second.stop()
    rmSync(folder, { recursive: true, force: true })
    never.resolve()
  })
})

describe('who follows a background response with another key of the account', () => {
  const ends: readonly (readonly [string, (following: Harness, key: string) => Promise<unknown>])[] = [
    ['was revoked', (following, key) => following.weir('keys revoke', { key })],
    ['was disabled', (following, key) => following.weir('keys set', { key, disable: true })],
  ]
  const wholeAndStreamed = [false, true].flatMap(stream => ends.map(([name, end]) => [name, stream, end] as const))

  test.each(wholeAndStreamed)(
    'gets nothing of it soon after the key %s, streamed: %p',
    async (_name, stream, endKey) => {
      let aheadMs = 0
      const clock = { nowMs: () => aheadMs, dateMs: () => Date.now() }
      const following = await startDialects({ world: { clock } })
      const rest = Promise.withResolvers<void>()
      try {
        const makeKey = async (more: object): Promise<{ key: string; account: string }> =>
          (await following.weir('keys create', { tier: 'pro', ...more })) as { key: string; account: string }
        const { key: maker, account } = await makeKey({ credit: '1' })
        const { key } = await makeKey({ account })
        following.upstream.plan(
          stream ? pausedStream(['one ', 'two'], [rest.promise]) : after(rest.promise, plain('a river')),
        )
        const received = following.upstream.nextRequest()
        const openai = clientAt(following, maker)
        const id = stream
          ? await idOfStream(openai)
          : (await openai.responses.create({ model: models.chat, ...inBackground })).id
        await received
        const url = `${following.url}/v1/responses/${id}?stream=true`
        const headers = { authorization: `Bearer ${key}` }
        using follow = spyOn(Followers.prototype, 'follow')
        const followed = fetch(url, { headers })
        await until(() => follow.mock.calls.length === 1, 'somebody follows')
        if (stream) await followed
        await endKey(following, key)
        aheadMs = bounds.readerCheckMs
        const outcome = followed.then(async answer => (await answer.text()) && answer.status)
        if (stream) await expect(outcome).rejects.toThrow()
        else expect(await outcome).toBe(401)
        expect((await openai.responses.retrieve(id)).status).toBe('in_progress')
      } finally {
        rest.resolve()
        await following.stop()
      }
    },
  )

  async function idOfStream(openai: OpenAI): Promise<string> {
    const events = await openai.responses.create({ model: models.chat, ...inBackground, stream: true })
    for await (const event of events) if (event.type === 'response.created') return event.response.id
    throw new Error('the response has not begun')
  }
})
