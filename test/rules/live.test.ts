// Rules that are changed while calls are made: they apply to the next call, and do not affect running calls.

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
  rmSync(folder, { recursive: true, force: true })
})

const model = 'openai/gpt-4o-mini'
const [one, two] = [channelId('openai', 'sk-1'), channelId('openai', 'sk-2')]
const operate = (command: string, input: object) => harness.weir(command, { ...input })
const call = (named: string, by = key): Promise<Response> => chat(harness, by, { model: named, messages: hello })

async function codeOf(answer: Promise<Response>): Promise<readonly [number, unknown]> {
  const { status, ...rest } = await answer.then(async got => ({ status: got.status, body: await got.json() }))
  return [status, (rest.body as { error?: { code: unknown } }).error?.code]
}

/** The keys with which the upstream is called in so many calls. */
async function keysOf(calls: number, named = model): Promise<ReadonlySet<string>> {
  const before = harness.upstream.requests.length
  for (let at = 0; at < calls; at++) expect((await call(named, await harness.key())).status).toBe(200)
  const usedKeys = harness.upstream.requests.slice(before).map(({ headers }) => headers.get('authorization')!.slice(7))
  return new Set(usedKeys)
}

describe('a route', () => {
  test('applies to the next call, changes for the one after it, and is gone for the last', async () => {
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

  test('falls back if its first members have no channel', async () => {
    await operate('routes set', { name: 'safe', members: [model, 'then', 'demo/echo'] })
    for (const channel of [one, two]) await operate('channels set', { channel, disable: true })
    expect((await call('safe')).headers.get('x-pipeline-route')).toContain('echo')
    for (const channel of [one, two]) await operate('channels reset', { channel })
    expect((await call('safe')).headers.get('x-pipeline-route')).toContain('gpt-4o-mini')
    await operate('routes remove', { name: 'safe' })
  })
})

describe('a channel', () => {
  test('gets no more calls once it is disabled, and all calls when the other is', async () => {
    await operate('channels set', { channel: one, disable: true })
    expect(await keysOf(8)).toEqual(new Set(['sk-2']))
    await operate('channels set', { channel: two, disable: true })
    expect(await codeOf(call(model))).toEqual([503, 'no_channel'])
    await operate('channels set', { channel: one, enable: true })
    expect(await keysOf(8)).toEqual(new Set(['sk-1']))
    await operate('channels reset', { channel: one })
    await operate('channels reset', { channel: two })
  })

  test('of a lower priority is not used while another can be', async () => {
    await operate('channels set', { channel: one, priority: '1' })
    expect(await keysOf(8)).toEqual(new Set(['sk-2']))
    await operate('channels reset', { channel: one })
  })

  test('that is disabled in the middle of an answer serves it to the end', async () => {
    const proceed = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['Hello, ', 'river'], proceed.promise))
    const answer = await chat(harness, key, { model, messages: hello, stream: true })
    const reader = answer.body!.getReader()
    const decoder = new TextDecoder()
    let text = decoder.decode((await reader.read()).value)
    for (const channel of [one, two]) await operate('channels set', { channel, disable: true })
    await operate('limits set', { resource: 'requests', amount: '1/minute', per: 'key', model })
    proceed.resolve()
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += decoder.decode(read.value)
    expect(text).toContain('river')
    expect(text).toEndWith('data: [DONE]\n\n')
    for (const channel of [one, two]) await operate('channels reset', { channel })
    const { data: limits } = (await operate('limits list', {})) as { data: { id: number }[] }
    for (const { id } of limits) await operate('limits remove', { id })
  })

  test('uses its proxy from the next call on, and none after the proxy is removed', async () => {
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
    expect(opened).toBe(1) // the same connection, although another setting was changed meanwhile
    expect(harness.logs.join()).not.toContain('hunter2')
    for (const channel of [one, two]) await operate('channels reset', { channel })
    await proxy.stop()
  })

  test('is listed as available only while it can be used', async () => {
    const availability = async (): Promise<unknown> => {
      const { data } = (await (await fetch(`${harness.url}/v1/models`)).json()) as { data: { id: string }[] }
      return data.some(({ id }) => id === model)
    }
    expect(await availability()).toBe(true)
    for (const channel of [one, two]) await operate('channels set', { channel, disable: true })
    expect(await availability()).toBe(false)
    for (const channel of [one, two]) await operate('channels reset', { channel })
    expect(await availability()).toBe(true)
  })
})

describe('a limit', () => {
  const remove = async (): Promise<void> => {
    const { data: limits } = (await operate('limits list', {})) as { data: { id: number }[] }
    for (const { id } of limits) await operate('limits remove', { id })
  }

  test('applies to the next call, changes for the one after it, and is gone for the last', async () => {
    const calls = async (count: number): Promise<readonly number[]> => {
      const statuses: number[] = []
      for (let at = 0; at < count; at++) statuses.push((await call(model)).status)
      return statuses
    }
    expect(await calls(3)).toEqual([200, 200, 200])
    await operate('limits set', { resource: 'requests', amount: '2/day', per: 'key', model: 'openai/*' })
    expect(await calls(3)).toEqual([200, 200, 429])
    expect((await call('demo/echo')).status).toBe(200)
    expect((await call(model, await harness.key())).status).toBe(200)
    await remove()
    expect(await calls(3)).toEqual([200, 200, 200])
  })

  test('of tokens and of concurrency applies too, for one key or one account', async () => {
    await operate('limits set', { resource: 'tokens', amount: '1/minute', key })
    // A call that is larger than the whole limit is admitted while nothing is used.
    expect([(await call(model)).status, (await call(model)).status]).toEqual([200, 429])
    expect((await call(model, await harness.key())).status).toBe(200)
    await remove()
    const proceed = Promise.withResolvers<void>()
    await operate('limits set', { resource: 'concurrency', amount: '1', account: key })
    harness.upstream.plan(pausedStream(['Hello, ', 'river'], proceed.promise))
    const first = await chat(harness, key, { model, messages: hello, stream: true })
    expect((await call(model)).status).toBe(429)
    proceed.resolve()
    await first.text()
    await harness.idle()
    expect((await call(model)).status).toBe(200)
    await remove()
  })
})

describe('the rights of a key', () => {
  const set = (more: object) => operate('keys set', { key, ...more })

  test("apply to the next call, by the model's name and by any route", async () => {
    await operate('routes set', { name: 'smart', members: [model, 'then', 'demo/echo'] })
    await set({ deny: 'openai/*' })
    const refused = await call(model)
    expect([refused.status, refused.headers.get('x-pipeline-route')]).toEqual([403, expect.stringMatching(/^fail/)])
    expect(((await refused.json()) as { error: { code: string } }).error.code).toBe('model_forbidden')
    // Of a route, the members that the key may use.
    expect((await call('smart')).headers.get('x-pipeline-route')).toContain('echo')
    await set({ deny: 'smart' })
    expect(await codeOf(call('smart'))).toEqual([403, 'model_forbidden'])
    await set({ allow: 'demo/*', deny: '' })
    expect([(await call('demo/echo')).status, (await call(model)).status]).toEqual([200, 403])
    await set({ allow: '' })
    expect((await call(model)).status).toBe(200)
    await operate('routes remove', { name: 'smart' })
  })

  test('do not affect other keys', async () => {
    await set({ allow: 'demo/*' })
    expect([(await call(model)).status, (await call(model, await harness.key())).status]).toEqual([403, 200])
  })

  test('restrict its data to channels with the required tags', async () => {
    await set({ require: 'eu' })
    expect(await codeOf(call(model))).toEqual([403, 'model_forbidden'])
    await operate('channels set', { channel: two, tags: 'eu,fast' })
    const before = harness.upstream.requests.length
    for (let calls = 0; calls < 8; calls++) expect((await call(model)).status).toBe(200)
    const usedKeys = harness.upstream.requests.slice(before).map(({ headers }) => headers.get('authorization'))
    expect(new Set(usedKeys)).toEqual(new Set(['Bearer sk-2']))
    await operate('channels set', { channel: two, tags: 'none' })
    expect(await codeOf(call(model))).toEqual([403, 'model_forbidden'])
    await operate('channels reset', { channel: two })
  })
})

test('all rules survive a restart', async () => {
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
