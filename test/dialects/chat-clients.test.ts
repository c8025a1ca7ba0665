// Answers that are written for chat callers, read by their SDKs: plain, streamed, and through the strict helpers.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { ToolSet } from 'ai'
import { generateText, jsonSchema, streamText, tool } from 'ai'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import type { ErrorCode } from '../../src/base/errors.ts'
import { buildErrorReply, errorRows, Refusal } from '../../src/base/errors.ts'
import type { Answer, AnswerPart } from '../../src/protocols/neutral/answer.ts'
import { toEvents } from '../../src/protocols/neutral/answer-collector.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import { askOf } from '../support/translation.ts'

const thought: AnswerPart = { kind: 'reasoning', text: 'Let me think.' }
const text: AnswerPart = { kind: 'text', text: 'Hello wörld' }
const call = (id: string, city: string): AnswerPart => ({
  kind: 'call',
  id,
  name: 'get_weather',
  arguments: JSON.stringify({ city }),
  sealed: { form: 'thought', value: 'c2ln', origin: 'o' },
})
const usage = { input: 40, cacheRead: 60, output: 30, reasoning: 10 }

const answers: Readonly<Record<string, Answer>> = {
  text: { choices: [{ parts: [text], finish: 'stop' }], usage },
  tool: { choices: [{ parts: [call('call_a', 'Paris')], finish: 'calls' }], usage },
  tools: {
    choices: [{ parts: [thought, text, call('call_a', 'Paris'), call('call_b', 'Rome')], finish: 'stop' }],
    usage,
  },
  reasoning: { choices: [{ parts: [thought, text], finish: 'length' }], usage },
  silence: { choices: [{ parts: [], finish: 'stop' }], usage },
}
const names = Object.keys(answers)
const dialects = ['openai-chat', 'ark'] as const

interface ChatRequest {
  readonly model: string
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean }
}

const json = { 'content-type': 'application/json' }

let server: ReturnType<typeof Bun.serve>

/** Answers as the model name says, in the dialect of the path. */
async function answer(request: Request): Promise<Response> {
  const protocol = protocols[new URL(request.url).pathname.startsWith('/ark') ? 'ark' : 'openai-chat']
  const { model, stream, stream_options: options } = (await request.json()) as ChatRequest
  if (model in errorRows) {
    const { status, body } = protocol.writeError(buildErrorReply(new Refusal(model as ErrorCode, 'x'), 'req_1'))
    const headers = { ...json, 'x-request-id': 'req_1', 'x-should-retry': 'false' }
    return new Response(body, { status, headers })
  }
  const ask = askOf({ model, wantsUsage: options?.include_usage === true })
  const found = answers[model.replace('broken ', '')]!
  if (!stream) return new Response(protocol.codec.writeWholeAnswer(found, ask), { headers: json })
  const writer = protocol.codec.openEventWriter(ask)
  const text = toEvents(found)
    .map(event => writer.write(event))
    .join('')
  const error = protocol.writeError(buildErrorReply(new Refusal('upstream_failed', 'x'), 'req_1'))
  const end = model.startsWith('broken') ? error.events : writer.end()
  return new Response(text + end, { headers: { 'content-type': 'text/event-stream' } })
}

beforeAll(() => {
  server = Bun.serve({ port: 0, fetch: answer })
})
afterAll(() => server.stop(true))

const messages = [{ role: 'user' as const, content: 'x' }]
const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters: { type: 'object' } } }]

function expected(name: string): Record<string, unknown> {
  const { parts } = answers[name]!.choices[0]!
  const text = parts.flatMap(part => (part.kind === 'text' ? [part.text] : [])).join('')
  const calls = parts.flatMap(part => (part.kind === 'call' ? [[part.id, part.name, part.arguments]] : []))
  const finish = calls.length > 0 ? 'tool_calls' : name === 'reasoning' ? 'length' : 'stop'
  return { text, calls, finish, total: 140 }
}

async function thrownBy(work: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await work()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

type Completion = Pick<OpenAI.ChatCompletion, 'choices' | 'usage'>

function summarize({ choices, usage: used }: Completion): Record<string, unknown> {
  const { message, finish_reason: finish } = choices[0]!
  const calls = (message.tool_calls ?? []).map(each =>
    each.type === 'function' ? [each.id, each.function.name, each.function.arguments] : [],
  )
  return { text: message.content ?? '', calls, finish, total: used?.total_tokens }
}

describe.each(dialects)('an answer of %s', dialect => {
  const baseURL = (): string => `http://127.0.0.1:${server.port}/${dialect === 'ark' ? 'ark' : 'v1'}`

  describe.each([
    ['openai 7', OpenAI],
    ['openai 6', OpenAI6 as unknown as typeof OpenAI],
  ] as const)('read by %s', (_version, Client) => {
    const client = () => new Client({ apiKey: 'wk-x', baseURL: baseURL(), maxRetries: 0 })

    test.each(names)('is complete, plain: %s', async name => {
      expect(summarize(await client().chat.completions.create({ model: name, messages }))).toEqual(expected(name))
    })

    test.each(names)('is complete, streamed: %s', async name => {
      const options = { model: name, messages, stream: true, stream_options: { include_usage: true } } as const
      const chunks = await Array.fromAsync(await client().chat.completions.create(options))
      const text = chunks.map(chunk => chunk.choices[0]?.delta.content ?? '').join('')
      const deltas = chunks.map(chunk => chunk.choices[0]?.delta as { reasoning_content?: string } | undefined)
      const thoughts = deltas.map(delta => delta?.reasoning_content ?? '')
      expect(text).toBe(expected(name).text as string)
      expect(thoughts.join('')).toBe(name === 'tools' || name === 'reasoning' ? 'Let me think.' : '')
      expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 140 } })
    })

    test.each(names)('is complete through the strict helper: %s', async name => {
      const options = { model: name, messages, tools, stream_options: { include_usage: true } }
      const stream = client().chat.completions.stream(options)
      expect(summarize(await stream.finalChatCompletion())).toEqual(expected(name))
    })

    test('P14: that fails is an error, not an empty success', async () => {
      const options = { model: 'upstream_unusable', messages, stream: true } as const
      const failed = await thrownBy(() => client().chat.completions.create(options))
      expect(failed).toMatchObject({ status: 502, requestID: 'req_1' })
      const cut = client().chat.completions.stream({ model: 'broken text', messages })
      expect(String(await thrownBy(() => cut.finalChatCompletion()))).toContain('broke off')
    })

    test('P34: with an error is raised as the class of its status', async () => {
      const raised = async (model: ErrorCode) => {
        const error = await thrownBy(() => client().chat.completions.create({ model, messages }))
        return (error as Error).constructor.name
      }
      const kinds = ['field_invalid', 'key_invalid', 'account_frozen', 'model_unknown', 'qpm_exceeded', 'gateway_fault']
      expect(await Promise.all(kinds.map(code => raised(code as ErrorCode)))).toEqual([
        ...['BadRequestError', 'AuthenticationError', 'PermissionDeniedError', 'NotFoundError', 'RateLimitError'],
        'InternalServerError',
      ])
    })
  })

  describe('read by the AI SDK', () => {
    const model = (name: string) =>
      createOpenAICompatible({ name: 'weir', apiKey: 'wk-x', baseURL: baseURL(), includeUsage: true })(name)
    const inputSchema = jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } })
    const toolSet = { get_weather: tool({ inputSchema }) } as unknown as ToolSet
    const callSettings = { prompt: 'x', tools: toolSet, maxRetries: 0 }
    const cities = (name: string) => (name === 'tools' ? ['Paris', 'Rome'] : name === 'tool' ? ['Paris'] : [])
    const thoughts = (name: string) => (name === 'tools' || name === 'reasoning' ? 'Let me think.' : '')

    test.each(names)('is complete, plain: %s', async name => {
      const result = await generateText({ model: model(name), ...callSettings })
      expect(result.text).toBe(expected(name).text as string)
      expect(result.reasoningText ?? '').toBe(thoughts(name))
      expect(result.toolCalls.map(each => (each.input as { city: string }).city)).toEqual(cities(name))
      expect(result.usage).toMatchObject({ inputTokens: 100, outputTokens: 40 })
    })

    test.each(names)('is complete, streamed: %s', async name => {
      const result = streamText({ model: model(name), ...callSettings })
      expect(await result.text).toBe(expected(name).text as string)
      expect((await result.reasoningText) ?? '').toBe(thoughts(name))
      const calls = await result.toolCalls
      expect(calls.map(each => (each.input as { city: string }).city)).toEqual(cities(name))
      // The SDK reads the signature from the first chunk of a call only.
      for (const each of calls) expect(JSON.stringify(each.providerMetadata)).toContain('thoughtSignature')
      expect(await result.usage).toMatchObject({ inputTokens: 100, outputTokens: 40 })
    })
  })
})
