// An explanation lists every limit of the call with its remaining amount. It uses one request of the limit per minute, and
// nothing else.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, startHarness } from '../support/gateway.ts'
import { ask, explain } from './dry.ts'

let harness: Harness
let operate: (command: string, input: Record<string, unknown>) => Promise<unknown>
beforeAll(async () => {
  // The clock hardly moves, so that no limit refills during a test.
  const clock = { ...systemClock, nowMs: () => performance.now() / 10_000 }
  harness = await startHarness({ env: { WEIR_DRAIN_SECONDS: '0' }, world: { clock } })
  operate = async (command, input) => await harness.weir(command, input)
})
afterAll(() => harness.stop())

const call = { body: { model: 'openai/gpt-4o-mini', messages: hello, max_tokens: 100 } }

test('an explanation lists the limits of the tier and of the key with what remains', async () => {
  const key = await harness.key({ qpm: 50 })
  await operate('limits set', { resource: 'requests', amount: '7/day', key })
  await operate('limits set', { resource: 'tokens', amount: '5000/minute', key })
  await operate('limits set', { resource: 'concurrency', amount: '3', key })
  const readRemaining = async (): Promise<Record<string, number>> => {
    const { json } = await explain(harness, key, call)
    expect(json.wouldAnswer).toBeNull()
    return Object.fromEntries(json.limits!.map(one => [`${one.resource} ${one.span}`, one.remaining as number]))
  }
  const full = { 'requests minute': 50, 'requests day': 7, 'tokens minute': 5_000, 'concurrency null': 3 }
  expect(await readRemaining()).toEqual({ ...full, 'requests minute': 49 })
  expect(await readRemaining()).toEqual({ ...full, 'requests minute': 48 })
  await (await ask(harness, key, call)).text()
  await harness.idle()
  const after = await readRemaining()
  expect(after).toMatchObject({ 'requests day': 6, 'concurrency null': 3 })
  expect(after['tokens minute']).toBeLessThan(5_000)
})

test('an explanation reports the refusal of an exhausted limit as the real call gets it', async () => {
  const key = await harness.key()
  await operate('limits set', { resource: 'requests', amount: '1/day', key })
  await (await ask(harness, key, call)).text()
  const explained = await explain(harness, key, call)
  expect(explained.status).toBe(200)
  const real = await ask(harness, key, call)
  const { error } = (await real.json()) as { error: { message: string } }
  expect(explained.json.wouldAnswer).toMatchObject({ status: real.status, message: error.message })
  expect(explained.json.limits!.length).toBeGreaterThan(0)
  expect(explained.headers.get('x-pipeline-ratelimit')).toMatch(/^fail/)
})
