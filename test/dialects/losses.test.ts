// No silent loss: fields that the dialect of the upstream does not have are reported in a header and in the record, or the
// call is refused if the caller wants that.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key()
})
afterAll(() => harness.stop())

function ask(body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${harness.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], ...body }),
  })
}

/** anthropic-messages has neither a seed nor a logit bias, and x_new is unknown. */
const untranslatable = { model: modelOf('anthropic-messages'), seed: 7, logit_bias: { 5: -1 }, x_new: true }

test('a loss is reported in a header and in the record, for streams as well', async () => {
  for (const stream of [false, true]) {
    const answer = await ask({ ...untranslatable, stream })
    expect([answer.status, answer.headers.get('x-weir-loss')]).toEqual([200, 'x_new, seed, logit_bias'])
    await answer.text()
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ loss: 'x_new,seed,logit_bias', status: 200 })
  }
})

test('a call without losses has no loss header', async () => {
  const answer = await ask({ model: modelOf('anthropic-messages'), temperature: 0.5 })
  expect([answer.status, answer.headers.get('x-weir-loss')]).toEqual([200, null])
})

async function expectRefused(answer: Response, requests: number): Promise<void> {
  const { error } = (await answer.json()) as { error: { code: string; message: string } }
  expect([answer.status, error.code]).toEqual([400, 'translation_loses'])
  expect(error.message).toContain('x_new, seed, logit_bias')
  expect(answer.headers.get('x-pipeline-adapter')).toMatch(/^fail \(\d+ms\)$/)
  expect(harness.upstream.requests.length).toBe(requests)
  await harness.idle()
  expect([harness.openHolds(), harness.lastRecord()]).toMatchObject([0, { cost: 0, error: 'translation_loses' }])
}

test('a call with strict translation is refused with the lost fields, and is neither sent nor charged', async () => {
  await expectRefused(await ask(untranslatable, { 'x-weir-translate': 'Strict' }), harness.upstream.requests.length)
  expect((await ask({ model: modelOf('openai-chat'), seed: 7 }, { 'x-weir-translate': 'strict' })).status).toBe(200)
})

test('a call of a key with strict on is refused as well', async () => {
  await harness.weir('keys set', { key, strict: 'on' })
  await expectRefused(await ask(untranslatable), harness.upstream.requests.length)
  await harness.weir('keys set', { key, strict: 'off' })
  expect((await ask(untranslatable)).status).toBe(200)
})
