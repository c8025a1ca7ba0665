// Rules that are laid down while calls are made: in force for the next call, and without any effect on one under way.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelId } from '../../src/upstreams/channels.ts'
import { pausedStream } from '../../tools/fake-upstream/answers.ts'
import { startProxy } from '../network/proxy-server.ts'
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
const operate = (command: string, input: object) => harness.weir(command, { ...input })
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
    expect(await codeOf(call('smart'))).toEqual([404, 'model_not_found'])
    await operate('routes set', { name: 'smart', members: [model] })
    const answer = await call('smart')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-pipeline-route')).toContain('gpt-4o-mini')
    await operate('routes set', { name: 'smart', members: ['demo/echo'] })
    expect((await call('smart')).headers.get('x-pipeline-route')).toContain('echo')
    await operate('routes remove', { name: 'smart' })
    expect(await codeOf(call('smart'))).toEqual([404, 'model_not_found'])
  })

  test('falls back where the first have no channel', async () => {
    await operate('routes set', { name: 'safe', members: [model, 'then', 'demo/echo'] })
    for (const channel of [one, two]) await operate('channels set', { channel, disable: true })
    expect((await call('safe')).headers.get('x-pipeline-route')).toContain('echo')
    for (const channel of [one, two]) await operate('channels reset', { channel })
    expect((await call('safe')).headers.get('x-pipeline-route')).toContain('gpt-4o-mini')
    await operate('routes remove', { name: 'safe' })
  })
})

describe('a channel', () => {
  test('gets no more calls once it is disabled, and all when the other is', async () => {
    await operate('channels set', { channel: one, disable: true })
    expect(await keysOf(8)).toEqual(new Set(['sk-2']))
    await operate('channels set', { channel: two, disable: true })
    expect(await codeOf(call(model))).toEqual([503, 'no_channel'])
    await operate('channels set', { channel: one, enable: true })
    expect(await keysOf(8)).toEqual(new Set(['sk-1']))
    await operate('channels reset', { channel: one })
    await operate('channels reset', { channel: two })
  })

  test('of a later priority is not used while another can', async () => {
    await operate('channels set', { channel: one, priority: '1' })
    expect(await keysOf(8)).toEqual(new Set(['sk-2']))
    await operate('channels reset', { channel: one })
  })

  test('that is disabled in the middle of an answer goes on to its end', async () => {
    const goOn = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['Hello, ', 'river'], goOn.promise))
    const answer = await chat(harness, key, { model, messages: hello, stream: true })
    const reader = answer.body!.getReader()
    const decoder = new TextDecoder()
    let text = decoder.decode((await reader.read()).value)
    for (const channel of [one, two]) await operate('channels set', { channel, disable: true })
    await operate('limits set', { resource: 'requests', amount: '1/minute', per: 'key', model })
    goOn.resolve()
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += decoder.decode(read.value)
    expect(text).toContain('river')
    expect(text).toEndWith('data: [DONE]\n\n')
    for (const channel of [one, two]) await operate('channels reset', { channel })
    const { data: limits } = (await operate('limits list', {})) as { data: { id: number }[] }
    for (const { id } of limits) await operate('limits remove', { id })
  })

  test('goes by its proxy from the next call on, and without it after that', async () => {
    const proxy = await startProxy({ credentials: 'joe:hunter2' })
    await operate('channels set', { channel: two, disable: true })
    await operate('channels set', { channel: one, proxy: proxy.url() })
    expect((await call(model)).status).toBe(200)
    expect(proxy.heads).toHaveLength(1)
    await operate('channels set', { channel: one, weight: '2' })
    expect((await call(model)).status).toBe(200)
    const [heads, opened] = [proxy.heads.length, proxy.openCount]
    await operate('channels set', { channel: one, proxy: 'none' })
    expect((await call(model)).status).toBe(200)
    expect(proxy.heads.length).toBe(heads)
    expect(opened).toBe(1) // by the same connection, although something else was changed meanwhile
    expect(harness.logs.join()).not.toContain('hunter2')
    for (const channel of [one, two]) await operate('channels reset', { channel })
    await proxy.stop()
  })

  test('is listed as available only while one can be used', async () => {
    const offered = async (): Promise<unknown> => {
      const { data } = (await (await fetch(`${harness.url}/v1/models`)).json()) as { data: { id: string }[] }
      return data.some(({ id }) => id === model)
    }
    expect(await offered()).toBe(true)
    for (const channel of [one, two]) await operate('channels set', { channel, disable: true })
    expect(await offered()).toBe(false)
    for (const channel of [one, two]) await operate('channels reset', { channel })
    expect(await offered()).toBe(true)
  })
})

describe('a limit', () => {
  const remove = async (): Promise<void> => {
    const { data: limits } = (await operate('limits list', {})) as { data: { id: number }[] }
    for (const { id } of limits) await operate('limits remove', { id })
  }

  test('holds for the next call, changes with the one after it, and is gone for the last', async () => {
    const calls = async (count: number): Promise<readonly number[]> => {
      const seen: number[] = []
      for (let at = 0; at < count; at++) seen.push((await call(model)).status)
      return seen
    }
    expect(await calls(3)).toEqual([200, 200, 200])
    await operate('limits set', { resource: 'requests', amount: '2/day', per: 'key', model: 'openai/*' })
    expect(await calls(3)).toEqual([200, 200, 429])
    expect((await call('demo/echo')).status).toBe(200)
    expect((await call(model, await harness.key())).status).toBe(200)
    await remove()
    expect(await calls(3)).toEqual([200, 200, 200])
  })

  test('of tokens and of places holds as well, for one key or one account', async () => {
    await operate('limits set', { resource: 'tokens', amount: '1/minute', key })
    // One that is larger than all of it finds its place where nothing has been taken yet.
    expect([(await call(model)).status, (await call(model)).status]).toEqual([200, 429])
    expect((await call(model, await harness.key())).status).toBe(200)
    await remove()
    const goOn = Promise.withResolvers<void>()
    await operate('limits set', { resource: 'concurrency', amount: '1', account: key })
    harness.upstream.plan(pausedStream(['Hello, ', 'river'], goOn.promise))
    const first = await chat(harness, key, { model, messages: hello, stream: true })
    expect((await call(model)).status).toBe(429)
    goOn.resolve()
    await first.text()
    await harness.idle()
    expect((await call(model)).status).toBe(200)
    await remove()
  })
})

describe('what a key may use', () => {
  const set = (more: object) => operate('keys set', { key, ...more })

  test('holds for the next call, by the name of the model and by any other', async () => {
    await operate('routes set', { name: 'smart', members: [model, 'then', 'demo/echo'] })
    await set({ deny: 'openai/*' })
    const refused = await call(model)
    expect([refused.status, refused.headers.get('x-pipeline-route')]).toEqual([403, expect.stringMatching(/^fail/)])
    expect(((await refused.json()) as { error: { code: string } }).error.code).toBe('model_forbidden')
    // Of a group those that it may use.
    expect((await call('smart')).headers.get('x-pipeline-route')).toContain('echo')
    await set({ deny: 'smart' })
    expect(await codeOf(call('smart'))).toEqual([403, 'model_forbidden'])
    await set({ allow: 'demo/*', deny: '' })
    expect([(await call('demo/echo')).status, (await call(model)).status]).toEqual([200, 403])
    await set({ allow: '' })
    expect((await call(model)).status).toBe(200)
    await operate('routes remove', { name: 'smart' })
  })

  test('holds for nobody else', async () => {
    await set({ allow: 'demo/*' })
    expect([(await call(model)).status, (await call(model, await harness.key())).status]).toEqual([403, 200])
  })

  test('keeps its data to channels that are tagged so', async () => {
    await set({ require: 'eu' })
    expect(await codeOf(call(model))).toEqual([403, 'model_forbidden'])
    await operate('channels set', { channel: two, tags: 'eu,fast' })
    const before = harness.upstream.requests.length
    for (let calls = 0; calls < 8; calls++) expect((await call(model)).status).toBe(200)
    const seen = harness.upstream.requests.slice(before).map(({ headers }) => headers.get('authorization'))
    expect(new Set(seen)).toEqual(new Set(['Bearer sk-2']))
    await operate('channels set', { channel: two, tags: 'none' })
    expect(await codeOf(call(model))).toEqual([403, 'model_forbidden'])
    await operate('channels reset', { channel: two })
  })
})

test('all of it survives a restart', async () => {
  await operate('routes set', { name: 'kept', members: [model] })
  await operate('channels set', { channel: one, disable: true })
  await operate('limits set', { resource: 'requests', amount: '1/day', per: 'key', model: 'demo/*' })
  await operate('keys set', { key, deny: 'openai/*' })
  await harness.stop()
  harness = await startHarness({ folder, upstreamKeys: 'sk-2,sk-1' })
  expect(await keysOf(8, 'kept')).toEqual(new Set(['sk-2']))
  expect([(await call('demo/echo')).status, (await call('demo/echo')).status]).toEqual([200, 429])
  expect((await call('kept')).status).toBe(403)
})
