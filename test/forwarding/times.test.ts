// The provider file says how long an upstream may take, for the provider and for single models.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { buildCatalogue } from '../../src/upstreams/catalogue.ts'
import { pausedStream, silence } from '../../tools/fake-upstream/answers.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import type { Harness } from '../support/gateway.ts'
import { errorOf, eventsOf, openCall, startHasty } from './caller.ts'

const price = { input: '1', output: '2' }
const file = {
  id: 'river',
  name: 'River',
  baseUrl: 'https://river.example/v1',
  keyEnv: 'RIVER_KEY',
  baseUrlEnv: 'RIVER_URL',
  speaks: { 'openai-chat': '/chat/completions' },
  sign: 'bearer',
  times: { connectSeconds: 3, tlsSeconds: 4, firstContentSeconds: 60, betweenChunksSeconds: 60, totalSeconds: 600 },
  models: [
    { id: 'quick', price },
    { id: 'slow', price, times: { firstContentSeconds: 300, betweenChunksSeconds: 300 } },
    { id: 'short', price, times: { totalSeconds: 90 } },
  ],
}
/** The tests do not wait: they set the clock forward. */
let skewMs = 0
const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }

let harness: Harness
let upstream: FakeUpstream
let folder: string
let key: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-times-'))
  writeFileSync(join(folder, 'river.json'), JSON.stringify(file))
  upstream = await startFakeUpstream()
  const env = { WEIR_PROVIDERS: folder, RIVER_KEY: 'k', RIVER_URL: `${upstream.url}/v1` }
  harness = await startHasty({ world: { clock }, env })
  key = await harness.key()
})
afterAll(async () => {
  await harness.stop()
  await upstream.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('an upstream without an answer is given up after its own timeout, and one with a longer timeout is not', async () => {
  upstream.plan(silence())
  const opens = Promise.withResolvers<void>()
  const received = upstream.nextRequest()
  const quick = openCall(harness, key, { model: 'river/quick', stream: true })
  await received
  skewMs += 60_000
  await quick.whole()
  expect([quick.status, errorOf(quick.body).code]).toEqual([504, 'upstream_too_slow'])

  upstream.plan(pausedStream(['Hel', 'lo'], opens.promise))
  const slow = openCall(harness, key, { model: 'river/slow', stream: true })
  await slow.until(({ text }) => text.includes('Hel'), 'the stream has started')
  upstream.plan(pausedStream(['Hel', 'lo'], opens.promise))
  const stalled = openCall(harness, key, { model: 'river/quick', stream: true })
  await stalled.until(({ text }) => text.includes('Hel'), 'the other stream has started')
  skewMs += 60_000
  await stalled.whole()
  expect(stalled.text).toContain('Hel')
  expect(errorOf(eventsOf(stalled.body).at(-2)!).code).toBe('upstream_too_slow')
  expect(slow.text).not.toContain('upstream_too_slow')
  opens.resolve()
  await slow.whole()
  expect(eventsOf(slow.body).at(-1)).toBe('[DONE]')
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
})

test('a plain answer may take as long as its call, and no longer', async () => {
  upstream.plan(silence())
  const received = upstream.nextRequest()
  const short = openCall(harness, key, { model: 'river/short' })
  await received
  skewMs += 90_000
  await short.whole()
  expect([short.status, errorOf(short.body).code]).toEqual([504, 'upstream_too_slow'])
})

test('the connect timeout is that of the provider', () => {
  const files = [{ name: 'river.json', text: JSON.stringify(file) }]
  const catalogue = buildCatalogue({ files, env: { RIVER_KEY: 'k' }, builtInUrl: undefined })
  expect(catalogue.channelsOf('river')[0]!.networkPath).toMatchObject({ connectMs: 3_000, tlsMs: 4_000 })
})
