// Each dialect of the fake upstream as its official SDKs read it: whole, through the strict stream helpers, with tools,
// several tools at once, and thinking whose state goes back.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import type { Content, Part } from '@google/genai'
import { GoogleGenAI } from '@google/genai'
import { GoogleGenerativeAI } from '@google/generative-ai'
import type { LanguageModel } from 'ai'
import { generateText, jsonSchema, streamText, tool } from 'ai'
import Anthropic0 from 'anthropic-0'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import type { FakeUpstream } from './server.ts'
import { startFakeUpstream } from './server.ts'

let upstream: FakeUpstream
beforeAll(async () => {
  upstream = await startFakeUpstream()
})
afterAll(() => upstream.stop())

const apiKey = 'sk-test'
const empty = { type: 'object' as const, properties: {} }
const both = 'please use clock and use map {"city":"Paris"} now'
const expected = [
  ['clock', {}],
  ['map', { city: 'Paris' }],
]

const openAis = [
  ['openai 7', OpenAI],
  ['openai 6', OpenAI6 as unknown as typeof OpenAI],
] as const

describe.each(openAis)('responses, %s', (_name, Sdk) => {
  const client = () => new Sdk({ apiKey, baseURL: `${upstream.url}/v1`, maxRetries: 0 })
  const tools = ['clock', 'map'].map(name => ({ type: 'function' as const, name, parameters: empty, strict: false }))

  test('whole and streamed say the same', async () => {
    const asked = { model: 'echo', input: 'Grüße an alle' }
    const whole = await client().responses.create(asked)
    const stream = await client().responses.stream(asked).finalResponse()
    for (const reply of [whole, stream]) {
      expect([reply.output_text, reply.status]).toEqual(['Grüße an alle', 'completed'])
      expect(reply.usage).toMatchObject({ input_tokens: 3, output_tokens: 3, total_tokens: 6 })
    }
  })

  test('several calls at once, whole and streamed', async () => {
    const asked = { model: 'echo', input: both, tools }
    const whole = await client().responses.create(asked)
    const stream = await client().responses.stream(asked).finalResponse()
    for (const reply of [whole, stream]) {
      const calls = reply.output.flatMap(item => (item.type === 'function_call' ? [item] : []))
      expect(calls.map(call => [call.name, JSON.parse(call.arguments)])).toEqual(expected)
      expect(new Set(calls.map(call => call.call_id)).size).toBe(2)
    }
  })

  test('thinking is shown as asked, and its state goes back', async () => {
    const asked = {
      model: 'think',
      input: 'use clock',
      tools,
      store: false,
      reasoning: { summary: 'auto' as const },
      include: ['reasoning.encrypted_content' as const],
    }
    const first = await client().responses.stream(asked).finalResponse()
    expect(first.output.map(item => item.type)).toEqual(['reasoning', 'function_call'])
    expect(first.usage!.output_tokens_details.reasoning_tokens).toBe(5)
    const call = first.output.find(item => item.type === 'function_call')!
    const result = { type: 'function_call_output' as const, call_id: call.call_id, output: '12:00' }
    const talk = [{ role: 'user' as const, content: 'use clock' }, ...first.output, result]
    const second = await client().responses.create({ ...asked, input: talk as OpenAI.Responses.ResponseInput })
    expect(second.output_text).toBe('state kept: use clock')
    const without = talk.filter(item => !('type' in item) || item.type !== 'reasoning')
    const lost = await client().responses.create({ ...asked, input: without as OpenAI.Responses.ResponseInput })
    expect(lost.output_text).toBe('state lost: use clock')
  })

  test('too long an answer is incomplete', async () => {
    const asked = { model: 'lorem', input: 'x', max_output_tokens: 16 }
    const reply = await client().responses.stream(asked).finalResponse()
    expect([reply.status, reply.incomplete_details?.reason]).toEqual(['incomplete', 'max_output_tokens'])
  })

  test('chat thinks too', async () => {
    const messages = [{ role: 'user' as const, content: 'hello' }]
    const reply = await client().chat.completions.create({ model: 'think', messages })
    expect(reply.choices[0]!.message).toMatchObject({ content: 'hello', reasoning_content: 'Let me think about it.' })
    expect(reply.usage!.completion_tokens_details!.reasoning_tokens).toBe(5)
  })

  test('Ark speaks as chat does', async () => {
    const ark = new Sdk({ apiKey, baseURL: `${upstream.url}/api/v3`, maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: both }]
    const tools = ['clock', 'map'].map(name => ({ type: 'function' as const, function: { name, parameters: empty } }))
    const reply = await ark.chat.completions.stream({ model: 'think', messages, tools }).finalChatCompletion()
    const { message } = reply.choices[0]!
    expect(message.tool_calls!.length).toBe(2)
    expect(message).toHaveProperty('encrypted_content')
    const results = message.tool_calls!.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: 'ok' }))
    const talk = [...messages, message, ...results]
    const next = await ark.chat.completions.create({ model: 'think', messages: talk, tools })
    expect(next.choices[0]!.message.content).toBe(`state kept: ${both}`)
    expect((await ark.responses.create({ model: 'echo', input: 'hello' })).output_text).toBe('hello')
  })
})

const anthropics = [
  ['anthropic 1', Anthropic],
  ['anthropic 0', Anthropic0 as unknown as typeof Anthropic],
] as const

describe.each(anthropics)('messages, %s', (_name, Sdk) => {
  const client = () => new Sdk({ apiKey, baseURL: upstream.url, maxRetries: 0 })
  const tools = ['clock', 'map'].map(name => ({ name, input_schema: empty }))
  const ask = (model: string, content: string) => ({
    model,
    max_tokens: 2_048,
    messages: [{ role: 'user' as const, content }],
  })

  test('whole and streamed say the same', async () => {
    const whole = await client().messages.create(ask('echo', 'Grüße an alle'))
    const stream = await client().messages.stream(ask('echo', 'Grüße an alle')).finalMessage()
    for (const reply of [whole, stream]) {
      expect(reply.content).toMatchObject([{ type: 'text', text: 'Grüße an alle' }])
      expect([reply.stop_reason, reply.usage.input_tokens, reply.usage.output_tokens]).toEqual(['end_turn', 3, 3])
    }
  })

  test('several calls at once, whole and streamed', async () => {
    const asked = { ...ask('echo', both), tools }
    const whole = await client().messages.create(asked)
    const stream = await client().messages.stream(asked).finalMessage()
    for (const reply of [whole, stream]) {
      const calls = reply.content.flatMap(block => (block.type === 'tool_use' ? [block] : []))
      expect(calls.map(call => [call.name, call.input as object])).toEqual(expected as [string, object][])
      expect(reply.stop_reason).toBe('tool_use')
    }
  })

  test('thinking goes back with its signature', async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
    const asked = { ...ask('think', 'use clock'), tools, thinking }
    const first = await client().messages.stream(asked).finalMessage()
    expect(first.content.map(block => block.type)).toEqual(['thinking', 'tool_use'])
    const call = first.content.find(block => block.type === 'tool_use')!
    const result = { type: 'tool_result' as const, tool_use_id: call.id, content: '12:00' }
    const talk = (content: Anthropic.ContentBlock[]) => [
      ...asked.messages,
      { role: 'assistant' as const, content },
      { role: 'user' as const, content: [result] },
    ]
    const second = await client().messages.create({ ...asked, messages: talk(first.content) })
    expect(second.content.at(-1)).toMatchObject({ text: 'state kept: use clock' })
    const altered = first.content.map(block => (block.type === 'thinking' ? { ...block, signature: 'EqQB' } : block))
    const fault = await client()
      .messages.create({ ...asked, messages: talk(altered) })
      .catch(error => error)
    expect([fault.status, fault.message]).toEqual([400, expect.stringContaining('Invalid `signature`')])
  })

  test('the stop sequence is told', async () => {
    const reply = await client().messages.create({ ...ask('echo', 'one two three'), stop_sequences: ['two'] })
    expect([reply.stop_reason, reply.stop_sequence]).toEqual(['stop_sequence', 'two'])
  })
})

describe('gemini, @google/genai', () => {
  const client = () => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: upstream.url } }).models
  const tools = [{ functionDeclarations: ['clock', 'map'].map(name => ({ name })) }]

  async function streamed(asked: Parameters<ReturnType<typeof client>['generateContentStream']>[0]) {
    const parts: Part[] = []
    let last: Awaited<ReturnType<ReturnType<typeof client>['generateContent']>> | undefined
    for await (const piece of await client().generateContentStream(asked)) {
      parts.push(...(piece.candidates?.[0]?.content?.parts ?? []))
      last = piece
    }
    return { parts, last: last! }
  }

  test('whole and streamed say the same', async () => {
    const whole = await client().generateContent({ model: 'echo', contents: 'Grüße an alle' })
    const { parts, last } = await streamed({ model: 'echo', contents: 'Grüße an alle' })
    expect([whole.text, parts.map(part => part.text).join('')]).toEqual(['Grüße an alle', 'Grüße an alle'])
    for (const reply of [whole, last]) {
      expect(reply.candidates![0]!.finishReason).toBe('STOP' as never)
      expect(reply.usageMetadata).toMatchObject({ promptTokenCount: 3, candidatesTokenCount: 3, totalTokenCount: 6 })
    }
  })

  test('several calls at once, whole and streamed', async () => {
    const asked = { model: 'echo', contents: both, config: { tools } }
    const whole = (await client().generateContent(asked)).candidates![0]!.content!.parts!
    for (const parts of [whole, (await streamed(asked)).parts]) {
      const calls = parts.flatMap(part => (part.functionCall ? [part] : []))
      expect(calls.map(part => [part.functionCall!.name, part.functionCall!.args])).toEqual(expected)
      expect(calls.map(part => part.thoughtSignature !== undefined)).toEqual([true, false])
    }
  })

  test('thinking goes back with its signature', async () => {
    const config = { tools, thinkingConfig: { includeThoughts: true } }
    const { parts, last } = await streamed({ model: 'think', contents: 'use clock', config })
    expect(parts[0]).toMatchObject({ thought: true, text: 'Let me think about it.' })
    expect(last.usageMetadata).toMatchObject({ candidatesTokenCount: 2, thoughtsTokenCount: 5, totalTokenCount: 9 })
    const calling = parts.find(part => part.functionCall)!
    const { id = '', name = '' } = calling.functionCall!
    const answer: Part = { functionResponse: { id, name, response: { output: '12:00' } } }
    const talk = (part: Part): Content[] => [
      { role: 'user', parts: [{ text: 'use clock' }] },
      { role: 'model', parts: [part] },
      { role: 'user', parts: [answer] },
    ]
    const kept = await client().generateContent({ model: 'think', contents: talk(calling), config })
    expect(kept.text).toBe('state kept: use clock')
    const dummy = { ...calling, thoughtSignature: 'skip_thought_signature_validator' }
    const lost = await client().generateContent({ model: 'think', contents: talk(dummy), config })
    expect(lost.text).toBe('state lost: use clock')
    const { thoughtSignature: _, ...unsigned } = calling
    const fault = await client()
      .generateContent({ model: 'think', contents: talk(unsigned), config })
      .catch(e => e)
    expect([fault.status, fault.message]).toEqual([400, expect.stringContaining('missing a thought_signature')])
  })

  test('the legacy SDK reads it too', async () => {
    const legacy = new GoogleGenerativeAI(apiKey).getGenerativeModel({ model: 'echo' }, { baseUrl: upstream.url })
    expect((await legacy.generateContent('hello there')).response.text()).toBe('hello there')
    const { response } = await legacy.generateContentStream('hello there')
    expect((await response).text()).toBe('hello there')
  })

  test('P13: without alt=sse a stream is one JSON list, and so is its error', async () => {
    const ask = async (body: object) => {
      const url = `${upstream.url}/v1beta/models/echo:streamGenerateContent`
      return (await (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).json()) as Json[]
    }
    const list = await ask({ contents: [{ parts: [{ text: 'one two' }] }] })
    expect(list.map(entry => entry.candidates![0]!.content.parts[0]!.text)).toEqual(['one', ' two', ''])
    expect((await ask({ foo: 1 }))[0]!.error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' })
  })
})

interface Json {
  readonly error?: object
  readonly candidates?: readonly { readonly content: { readonly parts: readonly Part[] } }[]
}

const openai = () => createOpenAI({ apiKey, baseURL: `${upstream.url}/v1` })
const aiModels: readonly (readonly [string, (id: string) => LanguageModel])[] = [
  ['responses', id => openai()(id)],
  ['chat', id => openai().chat(id)],
  ['anthropic', id => createAnthropic({ apiKey, baseURL: `${upstream.url}/v1` })(id)],
  ['google', id => createGoogleGenerativeAI({ apiKey, baseURL: `${upstream.url}/v1beta` })(id)],
  ['compatible', id => createOpenAICompatible({ name: 'x', apiKey, baseURL: `${upstream.url}/api/v3` })(id)],
]

describe.each(aiModels)('the AI SDK, %s', (_name, model) => {
  const run = tool({ inputSchema: jsonSchema<object>(empty), execute: async () => 'done' })
  const asked = { tools: { clock: run, map: run }, maxRetries: 0 }
  const stopWhen = ({ steps }: { steps: readonly unknown[] }) => steps.length === 2

  test('generates and streams', async () => {
    const said = { model: model('echo'), prompt: 'hello there', maxRetries: 0 }
    expect((await generateText(said)).text).toBe('hello there')
    expect(await streamText(said).text).toBe('hello there')
  })

  test('calls two tools at once and goes on from their results', async () => {
    const whole = await generateText({ ...asked, model: model('echo'), prompt: both, stopWhen })
    expect(whole.steps.map(step => step.toolCalls.length)).toEqual([2, 0])
    const stream = streamText({ ...asked, model: model('think'), prompt: both, stopWhen })
    expect(await stream.text).toContain(both)
    expect((await stream.steps).map(step => step.toolCalls.length)).toEqual([2, 0])
  })
})
