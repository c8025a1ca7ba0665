// Spellings of a model that providers may understand although the gateway's data do not list them. None of them gets
// around a prohibition, a limit or a price. Prices by pattern make models callable that are not listed.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness({
    upstreamEnv: url => ({
      OPENROUTER_API_KEY: 'sk-or',
      OPENROUTER_BASE_URL: `${url}/v1`,
      OLLAMA_BASE_URL: `${url}/v1`,
    }),
  })
  for (const model of ['openrouter/*', 'openai/*', 'openai/*:me:*']) {
    await harness.weir('prices set', { model, price: '{"input":"0.01","output":"0.01"}' })
  }
})
afterAll(() => harness.stop())

async function outcome(key: string, model: string): Promise<string> {
  const answer = await chat(harness, key, { model, messages: hello, max_tokens: 5 })
  const { error } = (await answer.json()) as { error?: { code: string } }
  return error === undefined ? 'answered' : error.code
}

test.each([
  'openrouter//openai/gpt-5',
  'openrouter/openai//gpt-5',
  'openrouter/./openai/gpt-5',
  'openrouter/x/../openai/gpt-5',
  'openrouter/openai/gpt-5/.',
  'openrouter/..',
  'openrouter/openai%2Fgpt-5',
  'openrouter/openai/gpt-5%20',
  'openrouter/openai\\gpt-5',
  'openrouter/openai/gpt-5?x=1',
  'ollama/https://registry.ollama.ai/library/llama3.2',
])('%s, which servers read in different ways, is the name of no model', async model => {
  expect(await outcome(await harness.key(), model)).toBe('model_not_found')
})

test('neither is such a name behind a name of an operator', async () => {
  await harness.weir('routes set', { name: 'any/*', members: ['openrouter/*'] })
  const key = await harness.key()
  expect(await outcome(key, 'any/openai/gpt-5')).toBe('answered')
  for (const name of ['any//openai/gpt-5', 'any/./openai/gpt-5']) expect(await outcome(key, name)).not.toBe('answered')
  await harness.weir('routes remove', { name: 'any/*' })
})

const others = [
  ['openrouter/OpenAI/GPT_5', 'openrouter/openai/gpt-5', 'gpt-5', 'openrouter/gpt-5'],
  ['openrouter/~openai/gpt-5', 'openrouter/openai/gpt-5', 'gpt-5', 'openrouter/gpt-5'],
  ['openrouter/openrouter/openai/gpt-5', 'openrouter/openai/gpt-5', 'gpt-5'],
  ['openrouter/accounts/me/models/gpt-5', 'openrouter/openai/gpt-5', 'gpt-5'],
  ['openrouter/openai/gpt-5#accounts/me/deployments/d', 'openrouter/openai/gpt-5', 'gpt-5'],
  ['openai/ft:gpt-4o:me::id', 'openai/gpt-4o', 'gpt-4o'],
  ['openai/ft:gpt-4o:me:name:id', 'openai/gpt-4o', 'gpt-4o'],
  ['openai/FT:gpt-4o-2024-11-20:me::id', 'openai/gpt-4o', 'gpt-4o'],
  ['ollama/library/llama3.2', 'ollama/llama3.2', 'llama3.2'],
  ['ollama/registry.ollama.ai/library/llama3.2:latest', 'ollama/llama3.2', 'llama3.2'],
].flatMap(([model, ...rules]) => rules.map(rule => [rule, model!] as const))

test.each(others)('what forbids %s forbids %s', async (deny, model) => {
  const key = await harness.key()
  await harness.weir('keys set', { key, deny })
  expect(await outcome(key, model)).toBe('model_forbidden')
})

test.each(others)('a limit for %s counts %s', async (model, spelling) => {
  const key = await harness.key()
  const { id } = await harness.weir('limits set', { resource: 'requests', amount: '1/minute', key, model })
  await outcome(key, spelling)
  expect(await outcome(key, spelling)).toBe('rate_limit_exceeded')
  await harness.weir('limits remove', { id: String(id) })
})

test('what allows a model does not allow a spelling that a caller makes up', async () => {
  const key = await harness.key()
  await harness.weir('keys set', { key, allow: 'gpt-5' })
  for (const model of ['openrouter/~openai/gpt-5', 'openrouter/me/gpt-5', 'openrouter/openai/gpt-5#x']) {
    expect([model, await outcome(key, model)]).toEqual([model, 'model_forbidden'])
  }
})

test('a price by pattern is the price of a tuned model only if it is meant for tuned models', async () => {
  const key = await harness.key()
  const tuned = ['openai/ft:gpt-4o:org::id', 'openai/ft:gpt-4o:org:name:id', 'openai/ft:gpt-4o:org::id:ckpt-step-90']
  for (const model of tuned) expect([model, await outcome(key, model)]).toEqual([model, 'model_not_found'])
  await harness.weir('prices set', { model: 'openai/ft:gpt-4o:*', price: '{"input":"3.75","output":"15"}' })
  for (const model of tuned) expect([model, await outcome(key, model)]).toEqual([model, 'answered'])
  await harness.idle()
  const costs = harness.records().slice(-tuned.length)
  expect(new Set(costs.map(({ price_version }) => price_version)).size).toBe(1)
  expect(await outcome(key, 'openai/ft:gpt-4.1:org::id')).toBe('model_not_found')
  await harness.weir('prices withdraw', { model: 'openai/ft:gpt-4o:*' })
})

test('a pattern of an operator takes no text that is too long or not visible', async () => {
  await harness.weir('routes set', { name: 'fast*', members: ['demo/echo'] })
  const key = await harness.key()
  expect(await outcome(key, 'fast-1')).toBe('answered')
  for (const name of [`fast${'x'.repeat(253)}`, 'fast\r\nx: y', 'fast ', 'fast‐1']) {
    expect([name, await outcome(key, name)]).toEqual([name, 'model_malformed'])
  }
  await harness.weir('routes remove', { name: 'fast*' })
})
