// Every limit that a call meets is told with what is left of it. Telling uses one request of a minute, nothing else.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, startHarness } from '../support/gateway.ts'
import { ask, explain } from './dry.ts'

let harness: Harness
let operate: (command: string, input: Record<string, unknown>) => Promise<unknown>
beforeAll(async () => {
  // The clock hardly moves, so that nothing that was used comes back before a test looks.
  const clock = { ...systemClock, nowMs: () => performance.now() / 10_000 }
  harness = await startHarness({ env: { WEIR_DRAIN_SECONDS: '0' }, world: { clock } })
  operate = async (command, input) => await harness.weir(command, input)
})
afterAll(() => harness.stop())

const asked = { body: { model: 'openai/gpt-4o-mini', messages: hello, max_tokens: 100 } }

test('each of them, whosever it is', async () => {
  const key = await harness.key({ qpm: 50 })
  await operate('limits set', { resource: 'requests', amount: '7/day', key })
  await operate('limits set', { resource: 'tokens', amount: '5000/minute', key })
  await operate('limits set', { resource: 'concurrency', amount: '3', key })
  const looked = async (): Promise<Record<string, number>> => {
    const { json } = await explain(harness, key, asked)
    expect(json.wouldAnswer).toBeNull()
    return Object.fromEntries(json.limits!.map(one => [`${one.resource} ${one.span}`, one.remaining as number]))
  }
  const full = { 'requests minute': 50, 'requests day': 7, 'tokens minute': 5_000, 'concurrency null': 3 }
  expect(await looked()).toEqual({ ...full, 'requests minute': 49 })
  expect(await looked()).toEqual({ ...full, 'requests minute': 48 })
  await (await ask(harness, key, asked)).text()
  await harness.idle()
  const after = await looked()
  expect(after).toMatchObject({ 'requests day': 6, 'concurrency null': 3 })
  expect(after['tokens minute']).toBeLessThan(5_000)
})

test('one that would refuse the call is told as it would be', async () => {
  const key = await harness.key()
  await operate('limits set', { resource: 'requests', amount: '1/day', key })
  await (await ask(harness, key, asked)).text()
  const told = await explain(harness, key, asked)
  expect(told.status).toBe(200)
  const real = await ask(harness, key, asked)
  const { error } = (await real.json()) as { error: { message: string } }
  expect(told.json.wouldAnswer).toMatchObject({ status: real.status, message: error.message })
  expect(told.json.limits!.length).toBeGreaterThan(0)
  expect(told.headers.get('x-pipeline-ratelimit')).toMatch(/^fail/)
})
