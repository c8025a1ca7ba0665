// Translated calls to models of the shipped provider files: the provider's own rules on ids and fields.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startHarness({
    env: { MISTRAL_API_KEY: 'sk', GROQ_API_KEY: 'sk', GEMINI_API_KEY: 'sk' },
    upstreamEnv: url => ({
      MISTRAL_BASE_URL: `${url}/v1`,
      GROQ_BASE_URL: `${url}/v1`,
      GEMINI_BASE_URL: `${url}/v1beta`,
    }),
  })
  key = await harness.key()
})
afterAll(() => harness.stop())

type Json = Record<string, unknown>

interface Outcome {
  readonly status: number
  readonly losses: readonly string[]
  /** The path of the request that the upstream got, and its body; undefined if it got none. */
  readonly path: string | undefined
  readonly sent: Json
  readonly answer: Json
}

async function ask(path: string, body: Json, headers: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const before = harness.upstream.requests.length
  const response = await fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as Json
  const request = harness.upstream.requests[before]
  const losses = (response.headers.get('x-weir-loss') ?? '').split(', ').filter(code => code !== '')
  const sent = JSON.parse(String(Buffer.from(request?.body ?? '{}'))) as Json
  return { status: response.status, losses, path: request?.path, sent, answer }
}

const gemini = (model: string): string => `/v1beta/models/${model}:generateContent`
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
const messages = [{ role: 'user', content: 'hi' }]

/** The ids of the calls in a chat request, and those of the results. */
function idsIn(sent: Json): { readonly calls: readonly string[]; readonly results: readonly string[] } {
  const turns = sent.messages as readonly { tool_calls?: readonly { id: string }[]; tool_call_id?: string }[]
  return {
    calls: turns.flatMap(turn => turn.tool_calls?.map(({ id }) => id) ?? []),
    results: turns.flatMap(turn => turn.tool_call_id ?? []),
  }
}

describe('Mistral gets', () => {
  const large = 'mistral/mistral-large-latest'
  const declared = [{ functionDeclarations: [{ name: 'look' }] }]
  const callOf = (city: string): Json => ({ functionCall: { name: 'look', args: { city } } })
  const resultOf = (city: string): Json => ({ functionResponse: { name: 'look', response: { city } } })

  test('ids of its own form for calls without ids, and its own name of the seed', async () => {
    const { status, sent, losses } = await ask(gemini(large), {
      contents: [
        ...contents,
        { role: 'model', parts: [callOf('Rome'), callOf('Oslo')] },
        { role: 'user', parts: [resultOf('Rome'), resultOf('Oslo')] },
      ],
      tools: declared,
      generationConfig: { seed: 7, responseLogprobs: true, logprobs: 2, frequencyPenalty: 0.5 },
    })
    expect([status, losses]).toEqual([200, ['logprobs', 'top_logprobs']])
    const { calls, results } = idsIn(sent)
    for (const id of calls) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/)
    expect([new Set(calls).size, results]).toEqual([2, calls])
    expect(sent).toMatchObject({ random_seed: 7, frequency_penalty: 0.5 })
    for (const name of ['seed', 'logprobs', 'top_logprobs']) expect(sent).not.toHaveProperty(name)
  })

  test('ids of its own form for those of another provider, the same in every turn; its own ids stay', async () => {
    const toolUse = (id: string): Json => ({ type: 'tool_use', id, name: 'look', input: {} })
    const toolResult = (id: string): Json => ({ type: 'tool_result', tool_use_id: id, content: 'done' })
    const foreign = 'toolu_01A09q90qw90lq917835lq9'
    const turn = (id: string): Json[] => [
      { role: 'assistant', content: [toolUse(id)] },
      { role: 'user', content: [toolResult(id)] },
    ]
    const idsOf = async (...ids: readonly string[]) => {
      const tools = [{ name: 'look', input_schema: { type: 'object' } }]
      const body = { model: large, max_tokens: 50, messages: [...messages, ...ids.flatMap(turn)], tools }
      const { status, sent, losses } = await ask('/v1/messages', body)
      expect([status, losses]).toEqual([200, []])
      return idsIn(sent)
    }
    const { calls, results } = await idsOf(foreign)
    expect(calls).toEqual([expect.stringMatching(/^[a-zA-Z0-9]{9}$/)])
    expect(results).toEqual(calls)
    // A caller whose own id is what another one became.
    const next = await idsOf(foreign, 'D681PevKs')
    expect(next).toEqual({ calls: [calls[0]!, 'D681PevKs'], results: [calls[0]!, 'D681PevKs'] })
    const taken = await idsOf(foreign, calls[0]!)
    expect([new Set(taken.calls).size, taken.calls[1]]).toEqual([2, calls[0]])
    expect(taken.results).toEqual(taken.calls)
  })

  test('no other field that it does not know', async () => {
    const named = { role: 'user', content: 'hi', name: 'Ann' }
    const body = { model: large, messages: [named], logit_bias: { 5: 1 }, service_tier: 'default', n: 2, user: 'u' }
    const { status, sent, losses } = await ask('/api/v3/chat/completions', body)
    expect(status).toBe(200)
    expect(losses.toSorted()).toEqual(['logit_bias', 'name', 'service_tier', 'user'])
    expect(sent).toEqual({ model: 'mistral-large-latest', messages: [{ role: 'user', content: 'hi' }], n: 2 })
  })

  test('an effort that it knows', async () => {
    const reasoning = { effort: 'medium' }
    const { sent } = await ask('/v1/responses', { model: 'mistral/mistral-small-latest', input: 'hi', reasoning })
    expect(sent.reasoning_effort).toBe('high')
  })

  test('a chat request as it is, with the ids and fields of its caller', async () => {
    const history = [
      ...messages,
      { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: look }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ]
    const { sent, losses } = await ask('/v1/chat/completions', { model: large, messages: history, seed: 7 })
    expect([sent.messages, sent.seed, losses]).toEqual([history, 7, []])
  })
  const look = { name: 'look', arguments: '{}' }
})

test('Groq gets none of the fields that it refuses, and a call for several answers is refused', async () => {
  const model = 'groq/llama-3.3-70b-versatile'
  const config = { responseLogprobs: true, logprobs: 2, seed: 7, stopSequences: ['X'] }
  const { sent, losses } = await ask(gemini(model), { contents, generationConfig: config })
  expect([sent.seed, sent.stop, losses]).toEqual([7, ['X'], ['logprobs', 'top_logprobs']])
  for (const name of ['logprobs', 'top_logprobs']) expect(sent).not.toHaveProperty(name)
  const several = await ask(gemini(model), { contents, generationConfig: { candidateCount: 2 } })
  expect([several.status, several.path]).toEqual([400, undefined])
})

describe('a penalty', () => {
  const ark = (model: string, penalty: number): Promise<Outcome> =>
    ask('/api/v3/chat/completions', { model, messages, frequency_penalty: penalty, presence_penalty: penalty })
  const lost = ['frequency_penalty', 'presence_penalty']

  test.each(['google/gemini-2.5-flash', 'google/gemini-3.1-pro-preview'])('is left out for %s', async model => {
    const { status, sent, losses } = await ark(model, 0.5)
    expect([status, losses.toSorted(), sent.generationConfig]).toEqual([200, lost, undefined])
    expect((await ark(model, 0)).losses).toEqual([])
  })

  test('reaches Gemini 2.0', async () => {
    const { sent, losses } = await ark('google/gemini-2.0-flash', 0.5)
    expect([sent.generationConfig, losses]).toEqual([{ frequencyPenalty: 0.5, presencePenalty: 0.5 }, []])
  })
})
