// Callers that did not ask for thoughts do not get them: they read the first block, or the first part, as the answer. The
// upstream still gets its reasoning state back with the results of its tool calls, and thoughts are billed as before.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { PACKED_PREFIX } from '../../src/protocols/neutral/reasoning-state.ts'
import { answer, streamed } from '../../tools/fake-upstream/answers.ts'
import { issueState } from '../../tools/fake-upstream/reasoning-state.ts'
import type { Harness } from '../support/gateway.ts'
import type { Json } from './next-request.ts'
import { nextRequests } from './next-request.ts'
import { openTranslation, translateStream, translateWhole } from './test-translation.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

type Hiding = 'anthropic-messages' | 'gemini'

const THOUGHT = 'Let me think.'

/** Requests that do not ask for thoughts. */
const unasked: readonly (readonly [Hiding, string, Json])[] = [
  ['anthropic-messages', 'nothing', {}],
  ['anthropic-messages', 'disabled', { thinking: { type: 'disabled' } }],
  ['gemini', 'nothing', {}],
  ['gemini', 'includeThoughts: false', { generationConfig: { thinkingConfig: { includeThoughts: false } } }],
  ['gemini', 'only a budget', { generation_config: { thinking_config: { thinking_budget: 1_000 } } }],
]

/** Requests that ask for them. */
const asked: readonly (readonly [Hiding, string, Json])[] = [
  ['anthropic-messages', 'enabled', { thinking: { type: 'enabled', budget_tokens: 2_000 } }],
  ['anthropic-messages', 'adaptive', { thinking: { type: 'adaptive' } }],
  ['gemini', 'includeThoughts', { generationConfig: { thinkingConfig: { includeThoughts: true } } }],
  ['gemini', 'include_thoughts', { generation_config: { thinking_config: { include_thoughts: true } } }],
]

const goldenOf = (dialect: Dialect, form: 'json' | 'sse'): Buffer =>
  readFileSync(join(import.meta.dir, 'golden/upstream', `${dialect}.${form}`))

const wholeFor = (from: Dialect, to: Hiding, json: Json): Json =>
  JSON.parse(translateWhole(openTranslation(from, to, { json }), JSON.parse(String(goldenOf(from, 'json'))))) as Json

const streamFor = (from: Dialect, to: Hiding, json: Json): string =>
  translateStream(from, openTranslation(from, to, { json }), [goldenOf(from, 'sse')])

/** What kind of content each block or part has. */
function kindsOf(to: Hiding, reply: Json): readonly string[] {
  if (to === 'anthropic-messages') return (reply.content as Json[]).map(({ type }) => type as string)
  const [{ content }] = reply.candidates as [{ content: { parts: Json[] } }]
  return content.parts.map(part => (part.thought === true ? 'thought' : part.functionCall ? 'tool_use' : 'text'))
}

const usageOf = (reply: Json): unknown => reply.usage ?? reply.usageMetadata

const upstreamsOf = (to: Hiding): readonly Dialect[] => dialects.filter(dialect => dialect !== to)

describe.each(unasked)('a caller of %s that asks for %s', (to, _name, json) => {
  test.each(upstreamsOf(to))('gets text and calls of %s, and no thoughts', from => {
    const reply = wholeFor(from, to, json)
    expect(kindsOf(to, reply)).toEqual(['text', 'tool_use', 'tool_use'])
    expect(JSON.stringify(reply)).not.toContain(THOUGHT)
    const events = streamFor(from, to, json)
    expect(events).toContain('Hello')
    for (const hidden of [THOUGHT, 'thinking"', '"thought":', 'signature_delta']) expect(events).not.toContain(hidden)
  })

  test.each(upstreamsOf(to))('gets the same usage of %s as one that asks', from => {
    const [, , asks] = asked.find(([dialect]) => dialect === to)!
    const usage = usageOf(wholeFor(from, to, json))
    expect(usage).toEqual(usageOf(wholeFor(from, to, asks)))
    expect(JSON.stringify(usage)).toMatch(/"(?:thinking_tokens|thoughtsTokenCount)":10/)
  })
})

describe.each(asked)('a caller of %s that asks for %s', (to, _name, json) => {
  test.each(upstreamsOf(to))('gets the thoughts of %s', from => {
    const kinds = kindsOf(to, wholeFor(from, to, json))
    expect(['thinking', 'thought']).toContain(kinds[0]!)
    const events = streamFor(from, to, json)
    expect(events).toContain(to === 'gemini' ? '"thought":true' : '"thinking_delta"')
  })
})

test('a signature on the text of Gemini leaves no block behind the text', () => {
  const content = { role: 'model', parts: [{ text: 'Hi', thoughtSignature: 'AbCd' }] }
  const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 5, totalTokenCount: 10 }
  const reply = { candidates: [{ index: 0, content, finishReason: 'STOP' }], usageMetadata }
  const translation = openTranslation('gemini', 'anthropic-messages', { json: {} })
  const { content: blocks } = JSON.parse(translateWhole(translation, reply)) as Json
  expect(blocks).toEqual([{ type: 'text', text: 'Hi', citations: null }])
})

test.each(['anthropic-messages', 'gemini'] as const)('hidden thoughts of a long stream for %s have pings', to => {
  let nowS = 100
  const chunk = (delta: Json): Buffer =>
    Buffer.from(`data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`)
  function* pieces(): Iterable<Buffer> {
    for (let piece = 0; piece < 5; piece++, nowS += 6) yield chunk({ reasoning_content: 'hm' })
    yield chunk({ content: 'Done' })
  }
  const text = translateStream(
    'openai-chat',
    openTranslation('openai-chat', to, { json: {}, nowS: () => nowS }),
    pieces(),
  )
  const ping = to === 'gemini' ? '"parts":[{"text":""}]' : 'event: ping'
  const beforeContent = text.slice(0, text.indexOf('Done'))
  expect(beforeContent.split(ping).length - 1).toBe(2)
})

describe('through the gateway', () => {
  let harness: Harness
  let key: string
  beforeAll(async () => {
    harness = await startDialects({ env: { LOG_LEVEL: 'error' } })
    key = await harness.key()
  })
  afterAll(() => harness.stop())

  const paths: Readonly<Record<Hiding, (model: string) => string>> = {
    'anthropic-messages': () => '/v1/messages',
    'gemini': model => `/v1beta/models/${model}:generateContent`,
  }
  const schema = { type: 'object', properties: { city: {} } }
  const tools: Readonly<Record<Hiding, Json>> = {
    'anthropic-messages': { tools: [{ name: 'get_weather', input_schema: schema }] },
    'gemini': { tools: [{ functionDeclarations: [{ name: 'get_weather', parameters: schema }] }] },
  }
  const question: Readonly<Record<Hiding, Json>> = {
    'anthropic-messages': { max_tokens: 4_000, messages: [{ role: 'user', content: 'Weather?' }] },
    'gemini': { contents: [{ role: 'user', parts: [{ text: 'Weather?' }] }] },
  }

  async function send(to: Hiding, model: string, body: Json) {
    const response = await fetch(harness.url + paths[to](model), {
      method: 'POST',
      headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, ...tools[to], ...body }),
    })
    const { ordinal, body: sent } = harness.upstream.requests.at(-1)!
    return {
      status: response.status,
      json: (await response.json()) as Json,
      ordinal,
      sent: Buffer.from(sent).toString(),
    }
  }

  const base64 = (text: string): string => Buffer.from(text).toString('base64').slice(0, 5)

  /** What each upstream wants back: openai-chat its thoughts, the others their state. */
  const wanted: Readonly<Record<Dialect, string>> = {
    'openai-chat': THOUGHT,
    'ark': 'sig-',
    'openai-responses': 'sig-',
    'anthropic-messages': 'sig-messages-',
    'gemini': base64('sig-'),
  }

  const pairs = (['anthropic-messages', 'gemini'] as const).flatMap(to =>
    upstreamsOf(to).map(from => [to, from] as const),
  )

  test.each(pairs)('a caller of %s does not see the state of %s, which comes back to it', async (to, from) => {
    const model = modelOf(from, 'think')
    const call = { name: 'get_weather', arguments: '{"city":"Paris"}' }
    harness.upstream.plan(answer('Well', { reasoning: THOUGHT, toolCall: call }))
    const first = await send(to, model, question[to])
    expect([first.status, kindsOf(to, first.json)]).toEqual([200, ['text', 'tool_use']])
    expect(JSON.stringify(first.json)).not.toContain(THOUGHT)
    const second = await send(to, model, nextRequests[to](first.json))
    expect([second.status, second.json.error ?? null]).toEqual([200, null])
    expect(second.sent).not.toContain(PACKED_PREFIX)
    expect(second.sent).toContain(wanted[from])
    if (from !== 'anthropic-messages') return
    const signature = issueState({ by: 'messages', ordinal: first.ordinal, text: THOUGHT })
    expect(second.sent).toContain(JSON.stringify({ type: 'thinking', thinking: THOUGHT, signature }))
  })

  test('the official SDK of Anthropic finds the text in the first block, plain and streamed', async () => {
    const client = new Anthropic({ apiKey: key, baseURL: harness.url, maxRetries: 0 })
    const model = modelOf('openai-responses', 'think')
    const request = { model, max_tokens: 2_000, messages: [{ role: 'user' as const, content: 'hi' }] }
    for (const thinking of [undefined, { type: 'disabled' as const }]) {
      harness.upstream.plan(answer('Well', { reasoning: THOUGHT }), streamed(['We', 'll'], { reasoning: THOUGHT }))
      const fields = thinking === undefined ? request : { ...request, thinking }
      const message = await client.messages.create(fields)
      expect(message.content).toMatchObject([{ type: 'text', text: 'Well' }])
      expect((await client.messages.stream(fields).finalMessage()).content).toMatchObject([
        { type: 'text', text: 'Well' },
      ])
    }
  })
})
