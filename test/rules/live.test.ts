// Rules that are laid down while calls are made: in force for the next call, and without any effect on one under way.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pausedStream } from '../../src/fake-upstream/answers.ts'
import { channelId } from '../../src/upstreams/channels.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

let folder: string
let harness: Harness
let key: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-live-'))
  harness = await startHarness({ folder, upstreamKeys: 'sk-1,sk-2' })
})
beforeEach(async () => {
  key = await harness.key({ qpm: 100_000 })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true })
})

const model = 'openai/gpt-4o-mini'
const [one, two] = [channelId('openai', 'sk-1'), channelId('openai', 'sk-2')]
const operate = (command: string, input: object) => harness.gateway.operator[command]!({ ...input })
const call = (named: string, by = key): Promise<Response> => chat(harness, by, { model: named, messages: hello })

async function codeOf(answer: Promise<Response>): Promise<readonly [number, unknown]> {
  const { status, ...rest } = await answer.then(async got => ({ status: got.status, body: await got.json() }))
  return [status, (rest.body as { error?: { code: unknown } }).error?.code]
}

/** The keys that the upstream is asked with in so many calls. */
async function keysOf(calls: number, named = model): Promise<ReadonlySet<string>> {
  const before = harness.upstream.requests.length
  for (let at = 0; at < calls; at++) expect((await call(named, await harness.key())).status).toBe(200)
  const seen = harness.upstream.requests.slice(before).map(({ headers }) => headers.get('authorization')!.slice(7))
  return new Set(seen)
}

describe('a name for models', () => {
  test('is there for the next call, means something else for the one after it, and is gone for the last', async () => {
    expect(await codeOf(call('smart'))).toEqual([400, 'model_malformed'])
    await operate('routes-set', { name: 'smart', members: [model] })
    const answer = await call('smart')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-pipeline-route')).toContain('gpt-4o-mini')
    await operate('routes-set', { name: 'smart', members: ['demo/echo'] })
    expect((await call('smart')).headers.get('x-pipeline-route')).toContain('echo')
    await operate('routes-remove', { name: 'smart' })
    expect(await codeOf(call('smart'))).toEqual([400, 'model_malformed'])
  })

  test('falls back where the first have no channel', async () => {
    await operate('routes-set', { name: 'safe', members: [model, 'then', 'demo/echo'] })
    for (const channel of [one, two]) await operate('channels-set', { channel, disable: true })
    expect((await call('safe')).headers.get('x-pipeline-route')).toContain('echo')
    for (const channel of [one, two]) await operate('channels-reset', { channel })
    expect((await call('safe')).headers.get('x-pipeline-route')).toContain('gpt-4o-mini')
    await operate('routes-remove', { name: 'safe' })
  })
})

describe('a channel', () => {
  test('gets no more calls once it is disabled, and all when the other is', async () => {
    await operate('channels-set', { channel: one, disable: true })
    expect(await keysOf(8)).toEqual(new Set(['sk-2']))
    await operate('channels-set', { channel: two, disable: true })
    expect(await codeOf(call(model))).toEqual([503, 'no_channel'])
    await operate('channels-set', { channel: one, enable: true })
    expect(await keysOf(8)).toEqual(new Set(['sk-1']))
    await operate('channels-reset', { channel: one })
    await operate('channels-reset', { channel: two })
  })

  test('of a later priority is not used while another can', async () => {
    await operate('channels-set', { channel: one, priority: '1' })
    expect(await keysOf(8)).toEqual(new Set(['sk-2']))
    await operate('channels-reset', { channel: one })
  })

  test('that is disabled in the middle of an answer goes on to its end', async () => {
    const goOn = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['Hello, ', 'river'], goOn.promise))
    const answer = await chat(harness, key, { model, messages: hello, stream: true })
    const reader = answer.body!.getReader()
    const decoder = new TextDecoder()
    let text = decoder.decode((await reader.read()).value)
    for (const channel of [one, two]) await operate('channels-set', { channel, disable: true })
    await operate('limits-set', { resource: 'requests', amount: '1/minute', per: 'key', model })
    goOn.resolve()
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += decoder.decode(read.value)
    expect(text).toContain('river')
    expect(text).toEndWith('data: [DONE]\n\n')
    for (const channel of [one, two]) await operate('channels-reset', { channel })
    const { limits } = (await operate('limits-list', {})) as { limits: { id: number }[] }
    for (const { id } of limits) await operate('limits-remove', { id })
  })

  test('is listed as available only while one can be used', async () => {
    const offered = async (): Promise<unknown> => {
      const { data } = (await (await fetch(`${harness.url}/v1/models`)).json()) as { data: { id: string }[] }
      return data.some(({ id }) => id === model)
    }
    expect(await offered()).toBe(true)
    for (const channel of [one, two]) await operate('channels-set', { channel, disable: true })
    expect(await offered()).toBe(false)
    for (const channel of [one, two]) await operate('channels-reset', { channel })
    expect(await offered()).toBe(true)
  })
})

test('all of it survives a restart', async () => {
  await operate('routes-set', { name: 'kept', members: [model] })
  await operate('channels-set', { channel: one, disable: true })
  await harness.stop()
  harness = await startHarness({ folder, upstreamKeys: 'sk-2,sk-1' })
  expect(await keysOf(8, 'kept')).toEqual(new Set(['sk-2']))
})
