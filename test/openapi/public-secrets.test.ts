// Internals of the operator are in no public page.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'

let harness: Harness
let ask: Ask

const KEY = 'sk-canary-public-0123456789'

const definition = (id: string, more: object = {}): object => ({
  id,
  name: `Named ${id}`,
  baseUrl: `https://${id}.canary-host.example/v1`,
  keyEnv: 'NO_KEY',
  baseUrlEnv: 'NO_URL',
  speaks: { 'openai-chat': '/chat' },
  sign: 'bearer',
  tags: ['canary-tag'],
  models: [{ id: 'model', price: { input: '1', output: '2' } }],
  ...more,
})

beforeAll(async () => {
  // The clock stands still: a second after a channel has failed it may be tried again, and is not listed as down.
  harness = await startHarness({ world: { clock: { ...systemClock, nowMs: () => 0 } } })
  ask = await askAsOwner(harness)
  for (const id of ['shown', 'hidden-canary', 'empty-canary']) {
    expect((await ask('POST', 'web/providers', { definition: definition(id) })).status).toBeLessThan(300)
  }
  const internals = { tags: ['canary-own-tag'], headers: { 'x-own': 'canary-header' } }
  const channel = { name: 'canary-channel', credentials: [KEY], ...internals }
  expect((await ask('POST', 'web/channels', { ...channel, provider: 'shown' })).status).toBe(201)
  const hidden = await ask('POST', 'web/channels', { ...channel, provider: 'hidden-canary', disabled: true })
  expect(hidden.status).toBe(201)
})
afterAll(() => harness.stop())

const pages = [
  ...['models', 'providers', 'pricing', 'pricing?tier=pro', 'settings'].map(name => `/api/public/${name}`),
  ...['/v1/models', '/v1/models/shown/model', '/openapi.json', '/weir.schema.json', '/docs', '/llms.txt', '/'],
  ...['/health/live', '/health/ready'],
]

test.each(pages)('%s holds nothing internal', async path => {
  const response = await fetch(`${harness.url}${path}`)
  expect(response.status).toBe(200)
  const text = `${JSON.stringify([...response.headers])}\n${await response.text()}`
  const canaries = ['canary', KEY, '127.0.0.1', harness.folder, 'stored:', '"weight"', 'fingerprint"']
  const leaks = canaries.filter(word => text.toLowerCase().includes(word.toLowerCase()))
  // The document describes what a channel is, without any real one.
  const isDescription = ['/openapi.json', '/weir.schema.json', '/docs'].includes(path)
  expect(leaks).toEqual(isDescription ? leaks.filter(word => word.endsWith('"') || word === '127.0.0.1') : [])
  const channels = ((await ask('GET', 'web/channels')).body.data as { id: string }[]).map(({ id }) => id)
  expect(channels.filter(id => text.includes(id))).toEqual([])
})

test('a provider is listed while it can be called, and no longer', async () => {
  const ids = async (): Promise<unknown> => {
    const { data } = (await (await fetch(`${harness.url}/api/public/providers`)).json()) as { data: { id: string }[] }
    return data.map(({ id }) => id).sort()
  }
  expect(await ids()).toEqual(['demo', 'openai', 'shown'])
  const { data } = (await ask('GET', 'web/channels?provider=shown')).body as { data: { id: string }[] }
  await ask('POST', `web/channels/${encodeURIComponent(data[0]!.id)}/disable`)
  expect(await ids()).toEqual(['demo', 'openai'])
})

test('a provider whose channel does not answer is listed as down, without details', async () => {
  const status = async (): Promise<unknown> => {
    const { data } = (await (await fetch(`${harness.url}/api/public/providers`)).json()) as { data: { id: string }[] }
    return data.find(({ id }) => id === 'openai')
  }
  expect(await status()).toMatchObject({ status: 'up' })
  const key = await harness.key()
  const call = (): Promise<Response> =>
    fetch(`${harness.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'openai/gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] }),
    })
  await harness.upstream.stop()
  for (let at = 0; at < 30; at++) await (await call()).text()
  expect(await status()).toEqual({
    id: 'openai',
    name: expect.any(String),
    website: expect.any(String),
    speaks: expect.any(Array),
    models: expect.any(Number),
    status: 'down',
  })
})
