// Money where a name stands for several models: what is held covers whichever answers, and what is charged and written
// down is what answered.

import { afterEach, describe, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelId } from '../../src/upstreams/channels.ts'
import { answer, fail, pausedStream, streamHead } from '../../tools/fake-upstream/answers.ts'
import { anthropicWire } from '../../tools/fake-upstream/anthropic-messages/wire.ts'
import { chunk, end, script } from '../../tools/fake-upstream/script.ts'
import type { Caller } from '../forwarding/caller.ts'
import { openCall } from '../forwarding/caller.ts'
import { errorEvent, goodStream, role, sends } from '../forwarding/wire.ts'
import { openDatabase } from '../support/database.ts'
import { startHarness, until } from '../support/gateway.ts'
import type { Shores, ShoresOptions } from './shores.ts'
import { chatPath, startShores } from './shores.ts'

let shores: Shores
afterEach(() => shores.stop())

const start = async (options: ShoresOptions = {}): Promise<void> => {
  shores = await startShores(options)
}

async function lastRecord(): Promise<Record<string, unknown>> {
  await shores.idle()
  return shores.records().at(-1)!
}

const model = (outputTokensMax: number, output: string): object => ({
  id: 'echo',
  contextTokens: 32_768,
  outputTokensMax,
  price: { input: '0', output },
})

describe('a way that the funds do not cover', () => {
  test('is given up, though it would be covered if it wrote no more than another', async () => {
    const farFile = { speaks: chatPath, models: [model(10_000, '2')] }
    await start({ nearFile: { models: [model(100, '20')] }, farFile })
    await shores.name('smart', 'near/echo then far/echo')
    const key = await shores.key({ credit: '0.01' }) // near's 100 tokens come to 0.002, far's 10,000 to 0.02
    await shores.weir('keys set', { key, 'strict-cap': 'on' })
    shores.near.planModel('echo', fail(500))
    shores.far.planModel('echo', answer('Hello', { usage: { input: 1, output: 10_000 } }))
    expect((await shores.ask(key, 'smart')).status).toBe(502)
    expect(shores.far.requests).toHaveLength(0)
    expect(shores.logs.join('')).not.toContain('cost beyond the hold')
  })

  test('is kept where a first slice of it is covered', async () => {
    const farFile = { speaks: chatPath, models: [model(300, '20')] }
    await start({ nearFile: { models: [model(2_000, '20')] }, farFile })
    await shores.name('smart', 'near/echo then far/echo')
    const key = await shores.key({ credit: '0.01' })
    shores.near.planModel('echo', fail(500))
    const response = await shores.ask(key, 'smart')
    expect([response.status, response.headers.get('x-weir-cap')]).toEqual([200, null])
    expect([shores.near.requests.length, shores.far.requests.length]).toEqual([1, 1])
  })
})

describe('what is written down', () => {
  test('of a crash is the way that had answered', async () => {
    await start({ env: { WEIR_CHECKPOINT_SECONDS: '0' } })
    await shores.name('smart', 'near/echo then far/echo')
    const key = await shores.key()
    shores.near.planModel('echo', fail(500))
    const ends = Promise.withResolvers<void>()
    shores.far.plan(pausedStream(['x'.repeat(400)], ends.promise, { dialect: anthropicWire }))
    const response = await shores.ask(key, 'smart', { stream: true })
    const reader = response.body!.getReader()
    await reader.read()
    await until(() => usedIn(shores.folder) > 0, 'it is noted')
    const after = await startOnCopy()
    ends.resolve()
    while (!(await reader.read()).done);
    const [crashed, whole] = [after.record, await lastRecord()]
    expect(crashed).toMatchObject({ rule: 'crash_delivered', provider: 'far', model: 'echo', asked: 'smart' })
    expect(crashed.price_version).toBe(whole.price_version)
    expect(crashed.cost).toBe(10_000 * Number(crashed.input_tokens) + 20_000 * Number(crashed.output_tokens))
  })

  test('of an attempt that was never sent is nothing of the one before it', async () => {
    await start()
    await shores.name('smart', 'near/echo then far/echo')
    const key = await shores.key()
    shores.near.planModel('echo', fail(500))
    const json = { 'content-type': 'application/json', 'x-weir-translate': 'strict' }
    const headers = { authorization: `Bearer ${key}`, ...json }
    const body = JSON.stringify({ model: 'smart', messages: [{ role: 'user', content: 'Hi' }], logit_bias: { 50: 1 } })
    const url = `${shores.url}/v1/chat/completions`
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(502) // near may serve it again
    expect([shores.near.requests.length, shores.far.requests.length]).toEqual([1, 0])
    expect(await lastRecord()).toMatchObject({ provider: 'far', went_hash: null, cost: 0 })
  })
})

test('what a failed attempt said of its class of service says nothing of the next', async () => {
  const price = { input: '1', output: '2', cases: [{ class: 'priority', input: '2', output: '4' }] }
  await start({ nearKeys: 'n1,n2', nearFile: { models: [{ ...model(1_000, '1'), price }] } })
  const said = role({ service_tier: 'default' }) + errorEvent()
  shores.near.plan(script(streamHead, chunk(said), end), sends(goodStream))
  const response = await shores.ask(await shores.key(), 'near/echo', { stream: true, service_tier: 'priority' })
  expect([await response.text(), response.headers.get('x-weir-attempts')]).toEqual([expect.any(String), '2'])
  expect(await lastRecord()).toMatchObject({ usage_source: 'reported', cost: 7 * 2_000 + 5 * 4_000 })
})

test("of a channel's tokens a minute only those stay taken that its calls used", async () => {
  await start({ world: { pause: () => Promise.reject(new Error('it has to wait')) } })
  await shores.weir('channels set', { channel: channelId('near', 'near-1'), tpm: '2500' })
  const key = await shores.key()
  // Each is taken for more than a thousand until it is over.
  for (let call = 0; call < 5; call++) expect((await shores.ask(key, 'near/echo')).status).toBe(200)
})

function usedIn(folder: string): number {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  try {
    return (db.query('SELECT coalesce(max(used), 0) AS used FROM hold').get() as { used: number }).used
  } finally {
    db.close()
  }
}

/** What a start finds that is made on the files of this moment, as after a crash. */
async function startOnCopy(): Promise<{ record: Record<string, unknown> }> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-crash-'))
  try {
    for (const name of ['weir.db', 'weir.db-wal', 'pepper', 'jwt-secret', 'encryption-key']) {
      cpSync(join(shores.folder, name), join(folder, name))
    }
    const after = await startHarness({ folder })
    const [record] = after.records()
    await after.stop()
    return { record: record! }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('a call that pauses before it is tried again', () => {
  const begun = async (): Promise<Caller> => {
    const pausing = Promise.withResolvers<void>()
    const pause = (): Promise<void> => {
      pausing.resolve()
      return new Promise(() => {})
    }
    await start({ world: { pause } })
    shores.near.planModel('echo', fail(500))
    const caller = openCall(shores, await shores.key(), { model: 'near/echo' })
    await pausing.promise
    return caller
  }

  test('is over at once when its caller leaves, and costs nothing', async () => {
    const caller = await begun()
    caller.leave()
    expect(await lastRecord()).toMatchObject({ outcome: 'client_left', cost: 0, attempts: 1, provider: 'near' })
    expect(shores.openHolds()).toBe(0)
  })

  test('is over at once when the gateway stops, and is told so', async () => {
    const caller = await begun()
    const drained = shores.gateway.drain()
    expect((await caller.whole()).status).toBe(503)
    await drained
    expect(shores.records().at(-1)).toMatchObject({ outcome: 'drained', cost: 0, attempts: 1 })
    expect(shores.openHolds()).toBe(0)
  })
})

test('a call that was never sent says nothing of its channel', async () => {
  await start({ env: { WEIR_ATTEMPTS: '1' } })
  const key = await shores.key()
  const health = async (): Promise<string[]> => {
    const { data: channels } = (await shores.weir('channels list')) as { data: Told[] }
    return channels.filter(({ id }) => id.startsWith('far')).map(({ health }) => health.state)
  }
  shores.far.planModel('echo', fail(500, { dialect: anthropicWire }))
  for (let call = 0; call < 5; call++) await shores.ask(key, 'far/echo')
  expect(await health()).toEqual(['broken'])
  await shores.weir('keys set', { key, strict: 'on' })
  const response = await shores.ask(key, 'far/echo', { logit_bias: { 50: 1 } })
  expect([response.status, shores.far.requests.length]).toEqual([400, 5])
  expect(await health()).toEqual(['broken'])
})

interface Told {
  readonly id: string
  readonly health: { readonly state: string }
}

test('a conversation goes on at its keeper with whichever of the models is drawn', async () => {
  const models = ['a', 'b'].map(id => ({ ...model(1_000, '1'), id }))
  const can = { keepsResponses: true }
  const nearFile = { speaks: { 'openai-responses': '/responses' }, can, models }
  await start({ nearFile, world: { random: () => 0.99 } })
  await shores.name('smart', 'near/a near/b')
  const key = await shores.key()
  const respond = async (more: object): Promise<{ status: number; id: string }> => {
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'smart', input: 'Hello', ...more })
    const response = await fetch(`${shores.url}/v1/responses`, { method: 'POST', headers, body })
    return { status: response.status, id: ((await response.json()) as { id: string }).id }
  }
  const first = await respond({})
  for (const input of ['and', 'so', 'on']) {
    expect(await respond({ input, previous_response_id: first.id })).toMatchObject({ status: 200 })
  }
  expect(await lastRecord()).toMatchObject({ outcome: 'completed', provider: 'near' })
})
