// Tests that the official SDKs and the AI SDK can read the answers, and that their requests are understood.

import { describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import Anthropic from '@anthropic-ai/sdk'
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai'
import Anthropic0 from 'anthropic-0'
import type { ErrorCode } from '../../base/errors.ts'
import { buildErrorReply, Refusal } from '../../base/errors.ts'
import type { Answer, AnswerEvent } from '../neutral/answer.ts'
import { toEvents } from '../neutral/answer-collector.ts'
import type { Conversation } from '../neutral/conversation.ts'
import { Losses } from '../neutral/losses.ts'
import type { AnswerTarget, RequestHead } from '../protocol.ts'
import { codec } from './codec.ts'
import { writeError } from './errors.ts'
import { readCall, readCountCall, writeCount } from './request.ts'

type Sdk = typeof Anthropic
const sdks: readonly (readonly [string, Sdk])[] = [
  ['1.x', Anthropic],
  ['0.x', Anthropic0 as unknown as Sdk],
]

const sealed = { origin: 'there', form: 'encrypted', value: 'v', id: 'rs_1' } as const
const callPart = (id: string, args: string) => ({ kind: 'call', id, name: 'weather', arguments: args }) as const
const usage = { input: 40, cacheRead: 60, output: 30, reasoning: 10 }
const fullAnswer: Answer = {
  choices: [
    {
      parts: [
        { kind: 'reasoning', text: 'Let me think.', sealed },
        { kind: 'text', text: 'Hello', citations: [{ url: 'https://x.org', title: 'X' }] },
        callPart('call_a', '{"city":"Paris"}'),
        { ...callPart('call_b', '{"city":"Oslo"}'), sealed: { ...sealed, form: 'thought' } },
        callPart('call_c', ''),
      ],
      finish: 'calls',
    },
  ],
  usage,
}

/** The events of an answer, with all of its parts open at the same time. */
function interleaved(answer: Answer): readonly AnswerEvent[] {
  const events = toEvents(answer)
  const rank = ({ kind }: AnswerEvent) => ['start', 'open', 'delta', 'cite', 'close', 'finish'].indexOf(kind)
  return [...events].sort((one, other) => rank(one) - rank(other))
}

const targetFor = (model: string): AnswerTarget => ({
  requestId: 'req_1',
  model,
  createdS: 1,
  wantsUsage: true,
  choices: 1,
  json: {},
  losses: new Losses(),
})

interface AnsweringFetch {
  readonly conversations: Conversation[]
  readonly fetch: typeof fetch
}

/** A `fetch` that answers like the gateway, with one of these answers per request, without a socket. */
function answerWith(answers: readonly Answer[]): AnsweringFetch {
  const conversations: Conversation[] = []
  const respond = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input as string, init)
    const head: RequestHead = {
      path: new URL(request.url).pathname,
      query: name => new URL(request.url).searchParams.get(name),
      header: name => request.headers.get(name) ?? undefined,
    }
    const body = Buffer.from(await request.arrayBuffer())
    if (head.path.endsWith('/count_tokens')) {
      conversations.push(codec.readConversation(readCountCall(body, head)))
      return new Response(writeCount(7), { headers: { 'content-type': 'application/json' } })
    }
    const call = readCall(body, head)
    conversations.push(codec.readConversation(call))
    const answer = answers[conversations.length - 1] ?? answers.at(-1)!
    if (!call.stream) {
      const json = codec.writeWholeAnswer(answer, targetFor(call.model))
      return new Response(json, { headers: { 'content-type': 'application/json' } })
    }
    const writer = codec.openEventWriter(targetFor(call.model))
    const sse =
      interleaved(answer)
        .map(event => writer.write(event))
        .join('') + writer.end()
    return new Response(sse, { headers: { 'content-type': 'text/event-stream' } })
  }
  return { conversations, fetch: Object.assign(respond, { preconnect: fetch.preconnect }) }
}

const refuseWith = (code: ErrorCode, stream = false): typeof fetch => {
  const written = writeError(buildErrorReply(new Refusal(code, 'detail'), 'req_9'))
  const respond = async (): Promise<Response> =>
    stream
      ? new Response(written.events, { headers: { 'content-type': 'text/event-stream' } })
      : new Response(written.body, { status: written.status, headers: { 'content-type': 'application/json' } })
  return Object.assign(respond, { preconnect: fetch.preconnect })
}

const options = { apiKey: 'wk-x', baseURL: 'http://weir.test', maxRetries: 0 }
const request = { model: 'a/b', max_tokens: 100, messages: [{ role: 'user' as const, content: 'hi' }] }

describe.each(sdks)('@anthropic-ai/sdk %s', (_version, Sdk) => {
  const check = ({ content, stop_reason, usage: reported, model }: Anthropic.Message): void => {
    expect(model).toBe('a/b')
    expect(stop_reason).toBe('tool_use')
    expect(content.map(({ type }) => type)).toEqual([
      ...(['thinking', 'text', 'tool_use', 'tool_use', 'redacted_thinking', 'tool_use'] as const),
    ])
    expect(content[1]).toMatchObject({ text: 'Hello', citations: [{ url: 'https://x.org', title: 'X' }] })
    const calls = content.filter(block => block.type === 'tool_use')
    expect(calls.map(({ id, input }) => [id, input])).toEqual([
      ['call_a', { city: 'Paris' }],
      ['call_b', { city: 'Oslo' }],
      ['call_c', {}],
    ])
    expect(reported).toMatchObject({ input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 40 })
    expect(reported.output_tokens_details).toEqual({ thinking_tokens: 10 })
  }

  test('reads a message', async () => {
    const client = new Sdk({ ...options, fetch: answerWith([fullAnswer]).fetch })
    check(await client.messages.create(request))
  })

  test('P1, P3: reads a stream with its strict helper', async () => {
    const client = new Sdk({ ...options, fetch: answerWith([fullAnswer]).fetch })
    const stream = client.messages.stream(request)
    const texts: string[] = []
    stream.on('text', text => texts.push(text))
    check(await stream.finalMessage())
    expect(texts).toEqual(['Hello'])
  })

  test('sends back the content that it received', async () => {
    const { conversations, fetch } = answerWith([fullAnswer])
    const client = new Sdk({ ...options, fetch })
    for (const stream of [false, true]) {
      const { messages } = client
      const message = stream ? await messages.stream(request).finalMessage() : await messages.create(request)
      const results = message.content.flatMap(block =>
        block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'warm' }] : [],
      )
      await client.messages.create({
        ...request,
        messages: [
          ...request.messages,
          { role: 'assistant', content: message.content },
          { role: 'user', content: results },
        ],
      })
      const [, assistant, tools] = conversations.at(-1)!.messages
      expect(assistant!.parts.slice(0, 2)).toEqual([
        { kind: 'reasoning', text: 'Let me think.', sealed },
        expect.objectContaining({ kind: 'text', text: 'Hello' }),
      ])
      const state = { ...sealed, form: 'thought' } as const
      expect(assistant!.parts[3]).toEqual({ ...callPart('call_b', '{"city":"Oslo"}'), sealed: state })
      expect(tools!.parts.map(part => part.kind === 'result' && part.name)).toEqual(['weather', 'weather', 'weather'])
      expect(conversations.at(-1)!.lostFields).toEqual([])
    }
  })

  test('counts tokens', async () => {
    const client = new Sdk({ ...options, fetch: answerWith([fullAnswer]).fetch })
    expect((await client.messages.countTokens({ model: 'a/b', messages: request.messages })).input_tokens).toBe(7)
  })

  test.each<readonly [ErrorCode, number, string]>([
    ['field_invalid', 400, 'BadRequestError'],
    ['key_invalid', 401, 'AuthenticationError'],
    ['model_unknown', 404, 'NotFoundError'],
    ['qpm_exceeded', 429, 'RateLimitError'],
    ['upstream_failed', 502, 'InternalServerError'],
  ])('raises its own error for %s', async (code, status, name) => {
    const client = new Sdk({ ...options, fetch: refuseWith(code) })
    const fault = await client.messages.create(request).catch((error: unknown) => error)
    expect(fault).toBeInstanceOf(Sdk[name as 'APIError'])
    expect(fault).toMatchObject({ status, message: expect.stringContaining('.') })
  })

  test('raises an error that comes in a stream', async () => {
    const client = new Sdk({ ...options, fetch: refuseWith('upstream_failed', true) })
    const fault = await client.messages
      .stream(request)
      .finalMessage()
      .catch((error: unknown) => error)
    expect(fault).toBeInstanceOf(Sdk.APIError)
    expect(String(fault)).toContain('broke off')
  })
})

describe('AI SDK', () => {
  const inputSchema = jsonSchema({ type: 'object', properties: {} })
  const tools = { weather: tool({ inputSchema, execute: () => 'warm' }) }
  const end: Answer = { choices: [{ parts: [{ kind: 'text', text: 'Done' }], finish: 'stop' }], usage }
  const textOptions = (fetch: typeof globalThis.fetch) => ({
    model: createAnthropic({ apiKey: 'wk-x', baseURL: 'http://weir.test/v1', fetch })('a/b'),
    prompt: 'hi',
    tools,
    stopWhen: stepCountIs(2),
    maxRetries: 0,
    maxOutputTokens: 4096,
  })

  const check = (conversations: readonly Conversation[]): void => {
    const [, assistant, results] = conversations[1]!.messages.filter(({ role }) => role !== 'system')
    expect(assistant!.parts[0]).toEqual({ kind: 'reasoning', text: 'Let me think.', sealed })
    expect(assistant!.parts.find(part => part.kind === 'call' && part.id === 'call_b')).toMatchObject({
      sealed: { ...sealed, form: 'thought' },
    })
    expect(results!.parts.length).toBe(3)
  }

  test('runs its tools and sends back the reasoning state', async () => {
    const { conversations, fetch } = answerWith([fullAnswer, end])
    const { text } = await generateText(textOptions(fetch))
    expect(text).toBe('Done')
    check(conversations)
  })

  test('does the same in a stream', async () => {
    const { conversations, fetch } = answerWith([fullAnswer, end])
    const result = streamText(textOptions(fetch))
    expect(await result.text).toBe('Done')
    expect((await result.totalUsage).inputTokens).toBe(200)
    check(conversations)
  })
})

test.each<readonly [string, string]>([
  ['overloaded_error', 'overloaded_error'],
  ['rate_limit_error', 'rate_limit_error'],
  ['authentication_error', 'api_error'],
  ['their_own', 'api_error'],
])('P34: an upstream error %s in a stream becomes %s', (type, written) => {
  const upstream = { status: 502, message: 'Sorry.', type }
  const { events } = writeError(buildErrorReply(new Refusal('upstream_failed', 'x', { upstream }), 'req_9'))
  const error = { type: written, message: 'Sorry.' }
  expect(JSON.parse(events.split('data: ')[1]!)).toMatchObject({ type: 'error', error })
})
