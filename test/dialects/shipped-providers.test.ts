// Translated calls to models of the shipped provider files: the provider's own rules on ids and fields, and the dialect in
// which a provider with several gets a request.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createExplainKey, explain } from '../explain/dry.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startHarness({
    env: { MISTRAL_API_KEY: 'sk', GROQ_API_KEY: 'sk', GEMINI_API_KEY: 'sk', OPENROUTER_API_KEY: 'sk' },
    upstreamEnv: url => ({
      MISTRAL_BASE_URL: `${url}/v1`,
      GROQ_BASE_URL: `${url}/v1`,
      GEMINI_BASE_URL: `${url}/v1beta`,
      OPENROUTER_BASE_URL: `${url}/v1`,
      OLLAMA_BASE_URL: `${url}/v1`,
      VLLM_BASE_URL: `${url}/v1`,
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

const efforts: readonly (readonly [model: string, requested: string, sent: string | undefined, lost: string[]])[] = [
  // Ollama refuses every other effort for a model that does not think.
  ['ollama/llama3.2', 'high', undefined, ['reasoning_effort']],
  ['ollama/llama3.2', 'none', 'none', []],
  ['vllm/llama', 'xhigh', 'high', []],
  ['vllm/llama', 'none', undefined, ['reasoning_effort.none']],
  ['openrouter/openai/o3', 'max', 'max', []],
  ['groq/llama-3.3-70b-versatile', 'low', undefined, ['reasoning_effort']],
  ['groq/openai/gpt-oss-120b', 'low', 'low', []],
  ['mistral/mistral-large-latest', 'high', undefined, ['reasoning_effort']],
  ['mistral/magistral-medium-latest', 'high', undefined, ['reasoning_effort']],
]
test.each(efforts)('%s gets an effort only in words that it knows (%s)', async (...[model, effort, expected, lost]) => {
  const { status, sent, losses } = await ask('/v1/responses', { model, input: 'hi', reasoning: { effort } })
  expect([status, sent.reasoning_effort, losses]).toEqual([200, expected, lost])
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

describe('OpenAI gets a request in', () => {
  const CHAT = '/v1/chat/completions'
  const RESPONSES = '/v1/responses'
  const strict = { 'x-weir-translate': 'strict' }
  const stopping = (model: string): Json => ({ model, max_tokens: 50, messages, stop_sequences: ['X'] })

  const both = ['gpt-4.1', 'gpt-5.1-chat-latest']
  test.each(both)('chat, if it asks for several answers of %s', async model => {
    const config = { candidateCount: 2 }
    const { status, path, sent, losses, answer } = await ask(
      gemini(`openai/${model}`),
      { contents, generationConfig: config },
      strict,
    )
    expect([status, path, sent.n, losses]).toEqual([200, CHAT, 2, []])
    expect(answer.candidates).toHaveLength(2)
  })

  const settings: readonly (readonly [string, Json, Json])[] = [
    ['stop sequences', { stopSequences: ['X'] }, { stop: ['X'] }],
    ['a seed', { seed: 7 }, { seed: 7 }],
    ['penalties', { frequencyPenalty: 1, presencePenalty: 1 }, { frequency_penalty: 1, presence_penalty: 1 }],
  ]
  test.each(settings)('chat, if it has %s', async (_name, generationConfig, expected) => {
    const { status, path, sent, losses } = await ask(gemini('openai/gpt-4.1'), { contents, generationConfig })
    expect([status, path, losses]).toEqual([200, CHAT, []])
    expect(sent).toMatchObject(expected)
  })

  test('chat, also as a stream', async () => {
    const response = await fetch(`${harness.url}/v1/messages`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...strict },
      body: JSON.stringify({ ...stopping('openai/gpt-4.1'), stream: true }),
    })
    const text = await response.text()
    expect([response.status, harness.upstream.requests.at(-1)!.path]).toEqual([200, CHAT])
    expect(text).toContain('event: message_stop')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', loss: null, output_tokens: 1 })
  })

  const usual: readonly (readonly [string, string, Json, readonly string[]])[] = [
    [
      'only has what both dialects have',
      'gpt-4.1',
      { temperature: 0.5, maxOutputTokens: 50, responseLogprobs: true },
      [],
    ],
    ['has what neither dialect has', 'gpt-4.1', { topK: 5 }, ['top_k']],
    ['is for a model that thinks', 'gpt-5', { stopSequences: ['X'] }, ['stop']],
    ['may be for a model that thinks', 'gpt-5.1-chat-latest', { stopSequences: ['X'] }, ['stop']],
  ]
  test.each(usual)('Responses, if it %s', async (_name, model, generationConfig, expected) => {
    const { status, path, losses } = await ask(gemini(`openai/${model}`), { contents, generationConfig })
    expect([status, path, losses]).toEqual([200, RESPONSES, expected])
  })

  test('Responses, if chat would lose as much', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    const { path, losses } = await ask('/v1/messages', { ...stopping('openai/gpt-4.1'), tools })
    expect([path, losses]).toEqual([RESPONSES, ['stop']])
  })

  test('no dialect, if the model thinks and several answers are asked for', async () => {
    const generationConfig = { candidateCount: 2 }
    const { status, path } = await ask(gemini('openai/gpt-5'), { contents, generationConfig })
    expect([status, path]).toEqual([400, undefined])
  })

  test('the dialect that an explanation shows', async () => {
    const explainKey = await createExplainKey(harness)
    const upstreamOf = async (body: Json) => {
      const { json } = await explain(harness, explainKey, { path: '/v1/messages', body })
      return [new URL(json.routing!.upstream.url).pathname, json.loss]
    }
    expect(await upstreamOf(stopping('openai/gpt-4.1'))).toEqual([CHAT, []])
    expect(await upstreamOf(stopping('openai/gpt-5'))).toEqual([RESPONSES, ['stop']])
  })
})
