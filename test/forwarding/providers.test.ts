// A provider is a file: a provider whose file is put into the folder is called, listed and billed without any code that
// knows it.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { startGateway } from '../../src/main.ts'
import { answer } from '../../tools/fake-upstream/answers.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { errorOf, openCall, startHasty } from './caller.ts'

let folder: string
let harness: Harness
let otherUpstream: FakeUpstream
let key: string

function drop(id: string, more: object): void {
  const file = {
    id,
    name: id,
    baseUrl: `${otherUpstream.url}/${id}/v9`,
    keyEnv: `${id.toUpperCase()}_KEY`,
    baseUrlEnv: `${id.toUpperCase()}_URL`,
    speaks: { 'openai-chat': '/chat/completions' },
    sign: 'bearer',
    models: [],
    ...more,
  }
  writeFileSync(join(folder, `${id}.json`), JSON.stringify(file))
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-providers-'))
  otherUpstream = await startFakeUpstream()
  drop('newcomer', {
    sign: 'x-api-key',
    models: [
      { id: 'small', price: { input: '0.0000015', output: '0.0000025' } },
      { id: 'org/large-2.0:free', contextTokens: 1_000, price: { input: '10', output: '20' } },
      { id: 'unpriced' },
    ],
  })
  drop('gratis', { free: true, keyless: true, openModels: true })
  const models = [{ id: 'm', price: { input: '1', output: '1' } }]
  drop('dormant', { models })
  drop('mute', { speaks: { 'smoke-signals': '/hill' }, models })
  const env = {
    WEIR_PROVIDERS: folder,
    NEWCOMER_KEY: 'newcomers-key',
    GRATIS_URL: `${otherUpstream.url}/moved/`,
    MUTE_KEY: 'mutes-key',
  }
  harness = await startHasty({ env })
  key = await harness.key({ credit: '1' })
})
afterAll(async () => {
  await harness.stop()
  await otherUpstream.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('a new provider is called at its address, with its own signing', async () => {
  const received = otherUpstream.nextRequest()
  const caller = await openCall(harness, key, { model: 'newcomer/small' }).whole()
  expect(caller.status).toBe(200)
  const route = Buffer.from(caller.header('x-pipeline-route')!, 'latin1').toString()
  expect(route).toMatch(/^pass \(\d+ms, newcomer→small\)$/)
  const request = await received
  expect(request.path).toBe('/newcomer/v9/chat/completions')
  expect(request.headers.get('x-api-key')).toBe('newcomers-key')
  expect(request.headers.has('authorization')).toBe(false)
  expect(request.json()).toMatchObject({ model: 'small' })
  expect(harness.upstream.requests).toEqual([])
})

test('its models are listed, except for those that cannot be called', async () => {
  const { data } = (await (await fetch(`${harness.url}/v1/models`)).json()) as { data: { id: string }[] }
  const ids = data.map(({ id }) => id)
  expect(ids).toContain('newcomer/small')
  expect(ids).toContain('newcomer/org/large-2.0:free')
  expect(ids).not.toContain('newcomer/unpriced')
  expect(ids).not.toContain('dormant/m')
})

test('a model with slashes and colons in its name is called by that name', async () => {
  const received = otherUpstream.nextRequest()
  const caller = await openCall(harness, key, { model: 'newcomer/org/large-2.0:free' }).whole()
  expect(caller.status).toBe(200)
  expect((await received).json()).toMatchObject({ model: 'org/large-2.0:free' })
})

test('a fraction of a nano-dollar is rounded up, once for the whole bill', async () => {
  const poorKey = await harness.key({ credit: '1' })
  otherUpstream.plan(answer('x', { usage: { input: 1_000, output: 1_000 } }))
  await openCall(harness, poorKey, { model: 'newcomer/small' }).whole()
  // 1.5 + 2.5 nano-dollars are 4 and not 2 + 3.
  expect(harness.lastRecord()).toMatchObject({ cost: 4 })
  otherUpstream.plan(answer('x', { usage: { input: 1, output: 1 } }))
  await openCall(harness, poorKey, { model: 'newcomer/small' }).whole()
  expect(harness.lastRecord()).toMatchObject({ cost: 1 })
  expect((await harness.balance(poorKey)).balance).toBe('0.999999995')
})

describe('a free provider', () => {
  test.each([false, true])('costs nothing, even for a key without a balance (stream: %p)', async stream => {
    const penniless = await harness.key({ credit: '0' })
    const received = otherUpstream.nextRequest()
    const caller = await openCall(harness, penniless, { model: 'gratis/whatever', stream }).whole()
    expect(caller.status).toBe(200)
    expect((await received).path).toBe('/moved/chat/completions')
    expect((await received).headers.has('authorization')).toBe(false)
    expect(await harness.balance(penniless)).toMatchObject({ balance: '0.00', held: '0.00' })
    expect(harness.lastRecord()).toMatchObject({ cost: 0, input_tokens: 2, output_tokens: 2, outcome: 'completed' })
    expect(harness.openHolds()).toBe(0)
  })
})

describe('a call is refused for', () => {
  const rows: readonly (readonly [string, string, number, string])[] = [
    ['a model with an unknown price', 'newcomer/unpriced', 503, 'price_unknown'],
    ['a model that is not in the file', 'newcomer/nothing', 404, 'model_not_found'],
    ['an unknown provider', 'nobody/nothing', 404, 'model_not_found'],
    ['a provider without a key', 'dormant/m', 503, 'no_channel'],
    ['a provider with an unknown dialect', 'mute/m', 400, 'call_unserved'],
  ]

  test.each(rows)('%s: %s is a %i %s', async (_name, model, status, code) => {
    const before = [otherUpstream.requests.length, harness.upstream.requests.length]
    const records = harness.recordCount()
    const caller = await openCall(harness, key, { model }).whole()
    expect([caller.status, errorOf(caller.body).code]).toEqual([status, code])
    expect(caller.header('x-pipeline-route')).toMatch(/^fail \(\d+ms\)$/)
    expect(caller.header('x-pipeline-adapter')).toBeUndefined()
    expect([otherUpstream.requests.length, harness.upstream.requests.length]).toEqual(before)
    await until(() => harness.recordCount() > records, 'the refusal is recorded')
    expect(harness.lastRecord()).toMatchObject({ cost: 0, outcome: 'refused', status })
    if (code === 'no_channel') {
      expect(caller.header('retry-after')).toBe('1') // SDKs wait for that time before they show the error
      expect(errorOf(caller.body).message).toContain('no enabled channel of dormant')
    }
    // Repeating the call does not make a price known.
    if (code === 'price_unknown') expect(caller.header('x-should-retry')).toBe('false')
  })
})

test('a later file replaces a provider that is shipped', async () => {
  drop('openai', { models: [{ id: 'gpt-4o-mini', price: { input: '1', output: '1' } }] })
  const env = { WEIR_PROVIDERS: folder, OPENAI_URL: `${otherUpstream.url}/replaced`, OPENAI_KEY: 'r' }
  const ownHarness = await startHasty({ env })
  try {
    const received = otherUpstream.nextRequest()
    expect((await openCall(ownHarness, await ownHarness.key(), {}).whole()).status).toBe(200)
    expect((await received).path).toBe('/replaced/chat/completions')
    expect(ownHarness.lastRecord()).toMatchObject({ cost: 4_000 })
  } finally {
    await ownHarness.stop()
    rmSync(join(folder, 'openai.json'))
  }
})

test('a malformed provider file stops the start, and the error says what is wrong with it', async () => {
  const bad = mkdtempSync(join(tmpdir(), 'weir-bad-'))
  try {
    writeFileSync(join(bad, 'bad.json'), '{"id":"bad","nmae":"Bad"}')
    const start = startGateway(readConfig({ PORT: '0', WEIR_DATA: join(bad, 'data'), WEIR_PROVIDERS: bad }))
    expect(await start.catch((fault: Error) => fault.message)).toMatch(/bad\.json: .*"nmae"/)
  } finally {
    rmSync(bad, { recursive: true, force: true })
  }
})
