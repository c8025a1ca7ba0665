// What callers see at each level of overload, with simulated measurements: who is refused, with which message, and that
// running calls, health and public data go on. The levels rise from test to test, as a level sinks slowly.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { pausedStream } from '../../tools/fake-upstream/answers.ts'
import { openCall } from '../forwarding/caller.ts'
import { done } from '../forwarding/wire.ts'
import { ask, bearer, CHAT, call, expectStages, goodBody, lines } from '../front/asking.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness, until } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'

const MIB = 1024 * 1024
let harness: Harness
let key: string
let memory = 0.1

beforeAll(async () => {
  harness = await startHarness({
    env: { WEIR_MEMORY_MB: '1000', METRICS_PORT: '0' },
    world: { memoryBytes: () => memory * 1000 * MIB },
  })
  key = await harness.key({ qpm: 10_000 })
})
afterAll(() => harness.stop())

const health = async (): Promise<readonly [number, number]> => {
  const answer = await fetch(`${harness.url}/health/ready`)
  return [answer.status, ((await answer.json()) as { overload: number }).overload]
}

/** Sets the measurement and waits for the level; it is checked only while there are calls. */
async function setPressure(share: number, level: number): Promise<void> {
  memory = share
  await call(harness, key)
  for (let seen = -1; seen !== level; [, seen] = await health()) await Bun.sleep(10)
}

const jsonOf = (body: Buffer): { error: { type: string; code?: unknown } } =>
  JSON.parse(body.toString()) as { error: { type: string; code?: unknown } }

describe('at overload level 1', () => {
  test('bodies are not stored, and this is counted; an idempotency key still works', async () => {
    const ownKey = await harness.key()
    const db = openDatabase(join(harness.folder, 'weir.db'))
    const { id } = db.query('SELECT max(id) AS id FROM api_key').get() as { id: number }
    db.run('UPDATE api_key SET keeps_bodies = 1 WHERE id = ?1', [id])
    db.close()
    await setPressure(0.82, 1)
    const headers = { 'idempotency-key': 'level-1' }
    const first = await call(harness, ownKey, goodBody(), headers)
    const replayed = await call(harness, ownKey, goodBody(), headers)
    const plain = await call(harness, ownKey)
    expect([first.status, replayed.status, plain.status]).toEqual([200, 200, 200])
    expect(replayed.header('x-weir-replayed')).toBe(first.header('x-request-id')!)
    for (const answer of [first, plain]) {
      const bodies = harness.weir('bodies', { call: answer.header('x-request-id')! })
      expect(String(await bodies.catch(String))).toContain('No bodies are stored')
    }
    await until(() => harness.logs.some(line => line.includes('the gateway is overloaded')), 'the overload is logged')
    const port = /127\.0\.0\.1:(\d+)\/metrics/.exec(harness.logs.find(line => line.includes('"metrics"'))!)![1]
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    expect(metrics).toMatch(/^weir_bodies_dropped_total [1-9]/m)
    expect(metrics).toMatch(/^weir_overload_level 1$/m)
    expect(metrics).toMatch(/^weir_overload_refusals_total\{reason="shut"\} 0/m)
  })
})

describe('at overload level 2', () => {
  test('the free tier is refused with a message, and the rest is served', async () => {
    const free = await harness.key({ tier: 'free' })
    await setPressure(0.9, 2)
    const refused = await rawRequest(
      harness.url,
      ask('POST', CHAT, { ...bearer(free), 'content-length': '30000000' }, goodBody()), // the announced body is never sent
    )
    expect([refused.status, jsonOf(refused.body).error.code]).toEqual([503, 'overloaded'])
    expectStages(refused, [lines.authPass('free'), lines.limitFail('overloaded')])
    expect(Number(refused.header('retry-after'))).toBeGreaterThan(0)
    expect((await call(harness, key)).status).toBe(200)
    expect(await health()).toEqual([200, 2])
    const unknownKey = await rawRequest(harness.url, ask('POST', CHAT, bearer('wk-nobody'), goodBody()))
    expect(unknownKey.status).toBe(401)
  })
})

describe('at overload level 3', () => {
  test('running calls go on, and everything new is refused before its body is read', async () => {
    const ends = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['one', 'two'], ends.promise))
    const stream = openCall(harness, key, { stream: true })
    await stream.until(({ text }) => text.includes('one'), 'content has arrived')
    await setPressure(0.95, 3)
    const upstreamRequests = harness.upstream.requests.length

    // The announced body is never sent.
    const unread = ask('POST', CHAT, { ...bearer(key), 'content-length': '30000000' }, goodBody())
    for (const request of [unread, ask('POST', CHAT, bearer(key), goodBody()), ask('POST', CHAT, {}, goodBody())]) {
      const answer = await rawRequest(harness.url, request)
      expect([answer.status, jsonOf(answer.body).error.code]).toEqual([503, 'overloaded'])
      expect(Number(answer.header('retry-after'))).toBeGreaterThan(0)
      expect(answer.header('x-should-retry')).toBeUndefined()
      expect(answer.header('x-request-id')).toBe(answer.header('request-id')!)
    }
    expect(harness.upstream.requests.length).toBe(upstreamRequests)

    const [ready, level] = await health()
    expect([ready, level]).toEqual([503, 3])
    for (const path of ['/health/live', '/api/public/models', '/v1/models', '/']) {
      expect([path, (await fetch(harness.url + path)).status]).toEqual([path, 200])
    }
    expect((await fetch(`${harness.url}/v1/key`, { headers: bearer(key) })).status).toBe(200)
    expect((await fetch(`${harness.url}/api/web/me`)).status).toBe(401)

    ends.resolve()
    await stream.until(({ isWhole }) => isWhole, 'the stream is complete')
    expect(stream.text).toEndWith(done)
    stream.leave()
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', status: 200 })
  })

  test.each([
    ['/v1/messages', 529, 'overloaded_error'],
    ['/v1/chat/completions', 503, 'server_error'],
    ['/v1/responses', 503, 'server_error'],
    ['/v1beta/models/openai%2Fgpt-4o-mini:generateContent', 503, 'overloaded'],
    ['/api/v3/chat/completions', 503, 'InternalServerError'],
    ['/v1/embeddings', 503, 'server_error'],
    ['/v1/messages/count_tokens', 529, 'overloaded_error'],
  ])('%s answers with %d', async (path, status, type) => {
    await setPressure(0.95, 3)
    const answer = await rawRequest(harness.url, ask('POST', path, bearer(key), goodBody()))
    expect([answer.status, jsonOf(answer.body).error.type]).toEqual([status, type])
    expect(answer.header('retry-after')).toBeDefined()
  })

  test('the level sinks by itself', async () => {
    await setPressure(0.95, 3)
    memory = 0.1
    for (let seen = -1; seen !== 0; [, seen] = await health()) await Bun.sleep(50)
    expect((await call(harness, key)).status).toBe(200)
    const events = harness.logs.filter(line => line.includes('"event":"overload"'))
    const levels = events.map(line => (JSON.parse(line) as { overload: number }).overload)
    expect(levels).toEqual([1, 2, 3, 2, 1, 0])
  })
})
