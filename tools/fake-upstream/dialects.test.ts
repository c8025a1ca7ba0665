// Tests each dialect of the fake upstream with its official SDKs: plain answers, the strict stream helpers, tools, several
// tools at once, and thinking whose state is sent back.

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
const twoToolsPrompt = 'please use clock and use map {"city":"Paris"} now'
const expected = [
  ['clock', {}],
  ['map', { city: 'Paris' }],
]

const openAiSdks = [
  ['openai 7', OpenAI],
  ['openai 6', OpenAI6 as unknown as typeof OpenAI],
] as const

describe.each(openAiSdks)('responses of the fake upstream with %s:', (_name, Sdk) => {
  const client = () => new Sdk({ apiKey, baseURL: `${upstream.url}/v1`, maxRetries: 0 })
  const tools = ['clock', 'map'].map(name => ({ type: 'function' as const, name, parameters: empty, strict: false }))

  test('plain and streamed answers are the same', async () => {
    const request = { model: 'echo', input: 'Grüße an alle' }
    const plain = await client().responses.create(request)
    const stream = await client().responses.stream(request).finalResponse()
    for (const reply of [plain, stream]) {
      expect([reply.output_text, reply.status]).toEqual(['Grüße an alle', 'completed'])
      expect(reply.usage).toMatchObject({ input_tokens: 3, output_tokens: 3, total_tokens: 6 })
    }
  })

  test('several tool calls at once, plain and streamed', async () => {
    const request = { model: 'echo', input: twoToolsPrompt, tools }
    const plain = await client().responses.create(request)
    const stream = await client().responses.stream(request).finalResponse()
    for (const reply of [plain, stream]) {
      const calls = reply.output.flatMap(item => (item.type === 'function_call' ? [item] : []))
      expect(calls.map(call => [call.name, JSON.parse(call.arguments)])).toEqual(expected)
      expect(new Set(calls.map(call => call.call_id)).size).toBe(2)
    }
  })

  test('thinking is shown on request, and its state is recognized when it is sent back', async () => {
    const request = {
      model: 'think',
      input: 'use clock',
      tools,
      store: false,
      reasoning: { summary: 'auto' as const },
      include: ['reasoning.encrypted_content' as const],
    }
    const first = await client().responses.stream(request).finalResponse()
    expect(first.output.map(item => item.type)).toEqual(['reasoning', 'function_call'])
    expect(first.usage!.output_tokens_details.reasoning_tokens).toBe(5)
    const call = first.output.find(item => item.type === 'function_call')!
    const result = { type: 'function_call_output' as const, call_id: call.call_id, output: '12:00' }
    const history = [{ role: 'user' as const, content: 'use clock' }, ...first.output, result]
    const second = await client().responses.create({ ...request, input: history as OpenAI.Responses.ResponseInput })
    expect(second.output_text).toBe('state kept: use clock')
    const without = history.filter(item => !('type' in item) || item.type !== 'reasoning')
    const withoutState = await client().responses.create({
      ...request,
      input: without as OpenAI.Responses.ResponseInput,
    })
    expect(withoutState.output_text).toBe('state lost: use clock')
  })

  test('an answer that is too long is incomplete', async () => {
    const request = { model: 'lorem', input: 'x', max_output_tokens: 16 }
    const reply = await client().responses.stream(request).finalResponse()
    expect([reply.status, reply.incomplete_details?.reason]).toEqual(['incomplete', 'max_output_tokens'])
  })

  test('chat answers have thinking', async () => {
    const messages = [{ role: 'user' as const, content: 'hello' }]
    const reply = await client().chat.completions.create({ model: 'think', messages })
    expect(reply.choices[0]!.message).toMatchObject({ content: 'hello', reasoning_content: 'Let me think about it.' })
    expect(reply.usage!.completion_tokens_details!.reasoning_tokens).toBe(5)
  })

  test('Ark answers are like chat answers', async () => {
    const ark = new Sdk({ apiKey, baseURL: `${upstream.url}/api/v3`, maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: twoToolsPrompt }]
    const tools = ['clock', 'map'].map(name => ({ type: 'function' as const, function: { name, parameters: empty } }))
    const reply = await ark.chat.completions.stream({ model: 'think', messages, tools }).finalChatCompletion()
    const { message } = reply.choices[0]!
    expect(message.tool_calls!.length).toBe(2)
    expect(message).toHaveProperty('encrypted_content')
    const results = message.tool_calls!.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: 'ok' }))
    const history = [...messages, message, ...results]
    const next = await ark.chat.completions.create({ model: 'think', messages: history, tools })
    expect(next.choices[0]!.message.content).toBe(`state kept: ${twoToolsPrompt}`)
    expect((await ark.responses.create({ model: 'echo', input: 'hello' })).output_text).toBe('hello')
  })
})

const anthropicSdks = [
  ['anthropic 1', Anthropic],
  ['anthropic 0', Anthropic0 as unknown as typeof Anthropic],
] as const

describe.each(anthropicSdks)('messages of the fake upstream with %s:', (_name, Sdk) => {
  const client = () => new Sdk({ apiKey, baseURL: upstream.url, maxRetries: 0 })
  const tools = ['clock', 'map'].map(name => ({ name, input_schema: empty }))
  const requestOf = (model: string, content: string) => ({
    model,
    max_tokens: 2_048,
    messages: [{ role: 'user' as const, content }],
  })

  test('plain and streamed answers are the same', async () => {
    const plain = await client().messages.create(requestOf('echo', 'Grüße an alle'))
    const stream = await client().messages.stream(requestOf('echo', 'Grüße an alle')).finalMessage()
    for (const reply of [plain, stream]) {
      expect(reply.content).toMatchObject([{ type: 'text', text: 'Grüße an alle' }])
      expect([reply.stop_reason, reply.usage.input_tokens, reply.usage.output_tokens]).toEqual(['end_turn', 3, 3])
    }
  })

  test('several tool calls at once, plain and streamed', async () => {
    const request = { ...requestOf('echo', twoToolsPrompt), tools }
    const plain = await client().messages.create(request)
    const stream = await client().messages.stream(request).finalMessage()
    for (const reply of [plain, stream]) {
      const calls = reply.content.flatMap(block => (block.type === 'tool_use' ? [block] : []))
      expect(calls.map(call => [call.name, call.input as object])).toEqual(expected as [string, object][])
      expect(reply.stop_reason).toBe('tool_use')
    }
  })

  test('thinking is recognized by its signature when it is sent back', async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
    const request = { ...requestOf('think', 'use clock'), tools, thinking }
    const first = await client().messages.stream(request).finalMessage()
    expect(first.content.map(block => block.type)).toEqual(['thinking', 'tool_use'])
    const call = first.content.find(block => block.type === 'tool_use')!
    const result = { type: 'tool_result' as const, tool_use_id: call.id, content: '12:00' }
    const historyWith = (content: Anthropic.ContentBlock[]) => [
      ...request.messages,
      { role: 'assistant' as const, content },
      { role: 'user' as const, content: [result] },
    ]
    const second = await client().messages.create({ ...request, messages: historyWith(first.content) })
    expect(second.content.at(-1)).toMatchObject({ text: 'state kept: use clock' })
    const altered = first.content.map(block => (block.type === 'thinking' ? { ...block, signature: 'EqQB' } : block))
    const fault = await client()
      .messages.create({ ...request, messages: historyWith(altered) })
      .catch(error => error)
    expect([fault.status, fault.message]).toEqual([400, expect.stringContaining('Invalid `signature`')])
  })

  test('the stop sequence is reported', async () => {
    const reply = await client().messages.create({ ...requestOf('echo', 'one two three'), stop_sequences: ['two'] })
    expect([reply.stop_reason, reply.stop_sequence]).toEqual(['stop_sequence', 'two'])
  })
})

describe('gemini answers of the fake upstream with @google/genai:', () => {
  const client = () => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: upstream.url } }).models
  const tools = [{ functionDeclarations: ['clock', 'map'].map(name => ({ name })) }]

  async function streamed(request: Parameters<ReturnType<typeof client>['generateContentStream']>[0]) {
    const parts: Part[] = []
    let last: Awaited<ReturnType<ReturnType<typeof client>['generateContent']>> | undefined
    for await (const piece of await client().generateContentStream(request)) {
      parts.push(...(piece.candidates?.[0]?.content?.parts ?? []))
      last = piece
    }
    return { parts, last: last! }
  }

  test('plain and streamed answers are the same', async () => {
    const plain = await client().generateContent({ model: 'echo', contents: 'Grüße an alle' })
    const { parts, last } = await streamed({ model: 'echo', contents: 'Grüße an alle' })
    expect([plain.text, parts.map(part => part.text).join('')]).toEqual(['Grüße an alle', 'Grüße an alle'])
    for (const reply of [plain, last]) {
      expect(reply.candidates![0]!.finishReason).toBe('STOP' as never)
      expect(reply.usageMetadata).toMatchObject({ promptTokenCount: 3, candidatesTokenCount: 3, totalTokenCount: 6 })
    }
  })

  test('several tool calls at once, plain and streamed', async () => {
    const request = { model: 'echo', contents: twoToolsPrompt, config: { tools } }
    const plain = (await client().generateContent(request)).candidates![0]!.content!.parts!
    for (const parts of [plain, (await streamed(request)).parts]) {
      const calls = parts.flatMap(part => (part.functionCall ? [part] : []))
      expect(calls.map(part => [part.functionCall!.name, part.functionCall!.args])).toEqual(expected)
      expect(calls.map(part => part.thoughtSignature !== undefined)).toEqual([true, false])
    }
  })

  test('thinking is recognized by its signature when it is sent back', async () => {
    const config = { tools, thinkingConfig: { includeThoughts: true } }
    const { parts, last } = await streamed({ model: 'think', contents: 'use clock', config })
    expect(parts[0]).toMatchObject({ thought: true, text: 'Let me think about it.' })
    expect(last.usageMetadata).toMatchObject({ candidatesTokenCount: 2, thoughtsTokenCount: 5, totalTokenCount: 9 })
    const callPart = parts.find(part => part.functionCall)!
    const { id = '', name = '' } = callPart.functionCall!
    const answer: Part = { functionResponse: { id, name, response: { output: '12:00' } } }
    const historyWith = (part: Part): Content[] => [
      { role: 'user', parts: [{ text: 'use clock' }] },
      { role: 'model', parts: [part] },
      { role: 'user', parts: [answer] },
    ]
    const withState = await client().generateContent({ model: 'think', contents: historyWith(callPart), config })
    expect(withState.text).toBe('state kept: use clock')
    const dummy = { ...callPart, thoughtSignature: 'skip_thought_signature_validator' }
    const withoutState = await client().generateContent({ model: 'think', contents: historyWith(dummy), config })
    expect(withoutState.text).toBe('state lost: use clock')
    const { thoughtSignature: _, ...unsigned } = callPart
    const fault = await client()
      .generateContent({ model: 'think', contents: historyWith(unsigned), config })
      .catch(e => e)
    expect([fault.status, fault.message]).toEqual([400, expect.stringContaining('missing a thought_signature')])
  })

  test('the legacy SDK reads the answers', async () => {
    const legacy = new GoogleGenerativeAI(apiKey).getGenerativeModel({ model: 'echo' }, { baseUrl: upstream.url })
    expect((await legacy.generateContent('hello there')).response.text()).toBe('hello there')
    const { response } = await legacy.generateContentStream('hello there')
    expect((await response).text()).toBe('hello there')
  })

  test('P13: without alt=sse a stream is one JSON list, and so is its error', async () => {
    const generate = async (body: object) => {
      const url = `${upstream.url}/v1beta/models/echo:streamGenerateContent`
      return (await (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).json()) as Json[]
    }
    const list = await generate({ contents: [{ parts: [{ text: 'one two' }] }] })
    expect(list.map(entry => entry.candidates![0]!.content.parts[0]!.text)).toEqual(['one', ' two', ''])
    expect((await generate({ foo: 1 }))[0]!.error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' })
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

describe.each(aiModels)('the AI SDK with the fake upstream, %s,', (_name, model) => {
  const run = tool({ inputSchema: jsonSchema<object>(empty), execute: async () => 'done' })
  const request = { tools: { clock: run, map: run }, maxRetries: 0 }
  const stopWhen = ({ steps }: { steps: readonly unknown[] }) => steps.length === 2

  test('generates and streams', async () => {
    const options = { model: model('echo'), prompt: 'hello there', maxRetries: 0 }
    expect((await generateText(options)).text).toBe('hello there')
    expect(await streamText(options).text).toBe('hello there')
  })

  test('calls two tools at once and continues with their results', async () => {
    const plain = await generateText({ ...request, model: model('echo'), prompt: twoToolsPrompt, stopWhen })
    expect(plain.steps.map(step => step.toolCalls.length)).toEqual([2, 0])
    const stream = streamText({ ...request, model: model('think'), prompt: twoToolsPrompt, stopWhen })
    expect(await stream.text).toContain(twoToolsPrompt)
    expect((await stream.steps).map(step => step.toolCalls.length)).toEqual([2, 0])
  })
})
