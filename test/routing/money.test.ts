// Money where a name stands for several models: the hold covers each candidate, and the charge and the record are those
// of the model that answered.

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
import type { TwoUpstreams, TwoUpstreamsOptions } from './two-upstreams.ts'
import { chatPath, startTwoUpstreams } from './two-upstreams.ts'

let upstreams: TwoUpstreams
afterEach(() => upstreams.stop())

const start = async (options: TwoUpstreamsOptions = {}): Promise<void> => {
  upstreams = await startTwoUpstreams(options)
}

async function lastRecord(): Promise<Record<string, unknown>> {
  await upstreams.idle()
  return upstreams.lastRecord()!
}

const model = (outputTokensMax: number, output: string): object => ({
  id: 'echo',
  contextTokens: 32_768,
  outputTokensMax,
  price: { input: '0', output },
})

describe('a candidate that the balance does not cover', () => {
  test("is skipped, although it would be covered if its answer were as short as another's", async () => {
    const farFile = { speaks: chatPath, models: [model(10_000, '2')] }
    await start({ nearFile: { models: [model(100, '20')] }, farFile })
    await upstreams.setRoute('smart', 'near/echo then far/echo')
    const key = await upstreams.key({ credit: '0.01' }) // near's 100 tokens cost up to 0.002, far's 10,000 up to 0.02
    await upstreams.weir('keys set', { key, 'strict-cap': 'on' })
    upstreams.near.planModel('echo', fail(500))
    upstreams.far.planModel('echo', answer('Hello', { usage: { input: 1, output: 10_000 } }))
    expect((await upstreams.call(key, 'smart')).status).toBe(502)
    expect(upstreams.far.requests).toHaveLength(0)
    expect(upstreams.logs.join('')).not.toContain('cost beyond the hold')
  })

  test('is kept if a first slice of its answer is covered', async () => {
    const farFile = { speaks: chatPath, models: [model(300, '20')] }
    await start({ nearFile: { models: [model(2_000, '20')] }, farFile })
    await upstreams.setRoute('smart', 'near/echo then far/echo')
    const key = await upstreams.key({ credit: '0.01' })
    upstreams.near.planModel('echo', fail(500))
    const response = await upstreams.call(key, 'smart')
    expect([response.status, response.headers.get('x-weir-cap')]).toEqual([200, null])
    expect([upstreams.near.requests.length, upstreams.far.requests.length]).toEqual([1, 1])
  })
})

describe('the record', () => {
  test('of a call that a crash cut off names the candidate that had answered', async () => {
    await start({ env: { WEIR_CHECKPOINT_SECONDS: '0' } })
    await upstreams.setRoute('smart', 'near/echo then far/echo')
    const key = await upstreams.key()
    upstreams.near.planModel('echo', fail(500))
    const ends = Promise.withResolvers<void>()
    upstreams.far.plan(pausedStream(['x'.repeat(400)], ends.promise, { dialect: anthropicWire }))
    const response = await upstreams.call(key, 'smart', { stream: true })
    const reader = response.body!.getReader()
    await reader.read()
    await until(() => usedIn(upstreams.folder) > 0, 'a checkpoint is written')
    const after = await startOnCopy()
    ends.resolve()
    while (!(await reader.read()).done);
    const [crashed, completed] = [after.record, await lastRecord()]
    expect(crashed).toMatchObject({ rule: 'crash_delivered', provider: 'far', model: 'echo', asked: 'smart' })
    expect(crashed.price_version).toBe(completed.price_version)
    expect(crashed.cost).toBe(10_000 * Number(crashed.input_tokens) + 20_000 * Number(crashed.output_tokens))
  })

  test('of an attempt that was never sent has nothing of the attempt before it', async () => {
    await start()
    await upstreams.setRoute('smart', 'near/echo then far/echo')
    const key = await upstreams.key()
    upstreams.near.planModel('echo', fail(500))
    const json = { 'content-type': 'application/json', 'x-weir-translate': 'strict' }
    const headers = { authorization: `Bearer ${key}`, ...json }
    const body = JSON.stringify({ model: 'smart', messages: [{ role: 'user', content: 'Hi' }], logit_bias: { 50: 1 } })
    const url = `${upstreams.url}/v1/chat/completions`
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(502) // near may serve it again
    expect([upstreams.near.requests.length, upstreams.far.requests.length]).toEqual([1, 0])
    expect(await lastRecord()).toMatchObject({ provider: 'far', went_hash: null, cost: 0 })
  })
})

test('the service tier of a failed attempt is not that of the next one', async () => {
  const price = { input: '1', output: '2', cases: [{ class: 'priority', input: '2', output: '4' }] }
  await start({ nearKeys: 'n1,n2', nearFile: { models: [{ ...model(1_000, '1'), price }] } })
  const failedStream = role({ service_tier: 'default' }) + errorEvent()
  upstreams.near.plan(script(streamHead, chunk(failedStream), end), sends(goodStream))
  const response = await upstreams.call(await upstreams.key(), 'near/echo', { stream: true, service_tier: 'priority' })
  expect([await response.text(), response.headers.get('x-weir-attempts')]).toEqual([expect.any(String), '2'])
  expect(await lastRecord()).toMatchObject({ usage_source: 'reported', cost: 7 * 2_000 + 5 * 4_000 })
})

test("of a channel's tokens per minute only those stay counted that its calls used", async () => {
  await start({ world: { pause: () => Promise.reject(new Error('it has to wait')) } })
  await upstreams.weir('channels set', { channel: channelId('near', 'near-1'), tpm: '2500' })
  const key = await upstreams.key()
  // Each call reserves more than a thousand until it has ended.
  for (let call = 0; call < 5; call++) expect((await upstreams.call(key, 'near/echo')).status).toBe(200)
})

function usedIn(folder: string): number {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  try {
    return (db.query('SELECT coalesce(max(used), 0) AS used FROM hold').get() as { used: number }).used
  } finally {
    db.close()
  }
}

/** The record that a start on a copy of the current files writes, as after a crash. */
async function startOnCopy(): Promise<{ record: Record<string, unknown> }> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-crash-'))
  try {
    for (const name of ['weir.db', 'weir.db-wal', 'pepper', 'jwt-secret', 'encryption-key']) {
      cpSync(join(upstreams.folder, name), join(folder, name))
    }
    const after = await startHarness({ folder })
    const [record] = after.records()
    await after.stop()
    return { record: record! }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe('a call that pauses before its next attempt', () => {
  const startPausedCall = async (): Promise<Caller> => {
    const pausing = Promise.withResolvers<void>()
    const pause = (): Promise<void> => {
      pausing.resolve()
      return new Promise(() => {})
    }
    await start({ world: { pause } })
    upstreams.near.planModel('echo', fail(500))
    const caller = openCall(upstreams, await upstreams.key(), { model: 'near/echo' })
    await pausing.promise
    return caller
  }

  test('ends at once when its caller leaves, and costs nothing', async () => {
    const caller = await startPausedCall()
    caller.leave()
    expect(await lastRecord()).toMatchObject({ outcome: 'client_left', cost: 0, attempts: 1, provider: 'near' })
    expect(upstreams.openHolds()).toBe(0)
  })

  test('ends at once when the gateway stops, with an error', async () => {
    const caller = await startPausedCall()
    const drained = upstreams.gateway.drain()
    expect((await caller.whole()).status).toBe(503)
    await drained
    expect(upstreams.lastRecord()).toMatchObject({ outcome: 'drained', cost: 0, attempts: 1 })
    expect(upstreams.openHolds()).toBe(0)
  })
})

test('a call that was never sent does not change the health of its channel', async () => {
  // The breaker is open for a second. The clock stands still, so that it is still open when it is looked at.
  await start({ env: { WEIR_ATTEMPTS: '1' }, world: { clock: { nowMs: () => 1_000, dateMs: Date.now } } })
  const key = await upstreams.key()
  const health = async (): Promise<string[]> => {
    const { data: channels } = (await upstreams.weir('channels list')) as { data: ChannelStatus[] }
    return channels.filter(({ id }) => id.startsWith('far')).map(({ health }) => health.state)
  }
  upstreams.far.planModel('echo', fail(500, { dialect: anthropicWire }))
  for (let call = 0; call < 5; call++) await upstreams.call(key, 'far/echo')
  expect(await health()).toEqual(['broken'])
  await upstreams.weir('keys set', { key, strict: 'on' })
  const response = await upstreams.call(key, 'far/echo', { logit_bias: { 50: 1 } })
  expect([response.status, upstreams.far.requests.length]).toEqual([400, 5])
  expect(await health()).toEqual(['broken'])
})

interface ChannelStatus {
  readonly id: string
  readonly health: { readonly state: string }
}

test('a conversation continues at the provider that stores it, whichever of the models is chosen', async () => {
  const models = ['a', 'b'].map(id => ({ ...model(1_000, '1'), id }))
  const can = { keepsResponses: true }
  const nearFile = { speaks: { 'openai-responses': '/responses' }, can, models }
  await start({ nearFile, world: { random: () => 0.99 } })
  await upstreams.setRoute('smart', 'near/a near/b')
  const key = await upstreams.key()
  const respond = async (more: object): Promise<{ status: number; id: string }> => {
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'smart', input: 'Hello', ...more })
    const response = await fetch(`${upstreams.url}/v1/responses`, { method: 'POST', headers, body })
    return { status: response.status, id: ((await response.json()) as { id: string }).id }
  }
  const first = await respond({})
  for (const input of ['and', 'so', 'on']) {
    expect(await respond({ input, previous_response_id: first.id })).toMatchObject({ status: 200 })
  }
  expect(await lastRecord()).toMatchObject({ outcome: 'completed', provider: 'near' })
})
