// Agents offer a web search with every call. If a search has no price, a translated call is sent without it and reports the
// loss.

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

const search = { type: 'web_search' }
const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }

function ask(upstream: Parameters<typeof modelOf>[0], rest: object): Promise<Response> {
  return fetch(`${harness.url}/v1/responses`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: modelOf(upstream), input: 'Hello, river', ...rest }),
  })
}

const lossesOf = (answer: Response): readonly string[] => answer.headers.get('x-weir-loss')?.split(', ') ?? []

test('a translated call without a price for searches keeps its other tools, and reports the loss', async () => {
  for (const upstream of ['anthropic-messages', 'gemini'] as const) {
    const answer = await ask(upstream, { tools: [look, search] })
    expect(answer.status).toBe(200)
    expect(lossesOf(answer)).toContain('web_search')
    const sent = JSON.stringify(harness.upstream.requests.at(-1)!.json())
    expect(sent).toContain('"look"')
    expect(sent).not.toMatch(/search/i)
    await answer.text()
  }
})

test('a required tool choice is dropped if no tool is left', async () => {
  const answer = await ask('anthropic-messages', { tools: [search], tool_choice: 'required' })
  expect(answer.status).toBe(200)
  expect(lossesOf(answer)).toEqual(expect.arrayContaining(['web_search', 'tool_choice']))
  await answer.text()
})

test('a native call with an unpriced search is refused, because its request is not changed', async () => {
  const answer = await ask('openai-responses', { tools: [look, search] })
  expect(answer.status).toBe(400)
  expect(await answer.text()).toContain('service_unpriced')
})
