// No silent loss: what an upstream's dialect cannot be told stands in a header and in the record, and a caller that
// would rather be refused is.

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

/** Neither a seed nor a bias can be said in Messages, and nobody knows the third. */
const wishes = { model: modelOf('anthropic-messages'), seed: 7, logit_bias: { 5: -1 }, x_new: true }

test('a loss is told in a header and in the record, for streams as well', async () => {
  for (const stream of [false, true]) {
    const answer = await ask({ ...wishes, stream })
    expect([answer.status, answer.headers.get('x-weir-loss')]).toEqual([200, 'x_new, seed, logit_bias'])
    await answer.text()
    await harness.idle()
    expect(harness.records().at(-1)).toMatchObject({ loss: 'x_new,seed,logit_bias', status: 200 })
  }
})

test('where nothing is lost there is no header', async () => {
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
  expect([harness.openHolds(), harness.records().at(-1)]).toMatchObject([0, { cost: 0, error: 'translation_loses' }])
}

test('a caller that asks for it is refused instead, with the fields named, and nothing is sent or paid', async () => {
  await expectRefused(await ask(wishes, { 'x-weir-translate': 'Strict' }), harness.upstream.requests.length)
  expect((await ask({ model: modelOf('openai-chat'), seed: 7 }, { 'x-weir-translate': 'strict' })).status).toBe(200)
})

test('so is one whose key asks for it', async () => {
  await harness.weir('keys set', { key, strict: 'on' })
  await expectRefused(await ask(wishes), harness.upstream.requests.length)
  await harness.weir('keys set', { key, strict: 'off' })
  expect((await ask(wishes)).status).toBe(200)
})
