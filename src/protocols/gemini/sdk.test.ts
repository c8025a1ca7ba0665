// Tests that Google's own clients and the AI SDK can read the answers, and that their requests are understood.

import { afterAll, describe, expect, test } from 'bun:test'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { ApiError, GoogleGenAI } from '@google/genai'
import { GoogleGenerativeAI } from '@google/generative-ai'
import type { ToolSet } from 'ai'
import { generateText, jsonSchema, streamText, tool } from 'ai'
import type { ErrorKind } from '../../base/errors.ts'
import type { Answer } from '../neutral/answer.ts'
import { toEvents } from '../neutral/answer-collector.ts'
import type { Conversation } from '../neutral/conversation.ts'
import { Losses } from '../neutral/losses.ts'
import type { AnswerTarget } from '../protocol.ts'
import { gemini } from './dialect.ts'
import { batchEmbedContents, embedContent } from './embeddings.ts'
import { writeModel, writeModelList } from './models.ts'
import { readPath } from './path.ts'
import { readCountCall, writeCount } from './token-count.ts'

/**
 * The heartbeat that clients get while the upstream is silent. @google/generative-ai finds no event after a comment, and
 * @google/genai forgets the whole turn after a chunk without content. All clients can read this chunk.
 */
const heartbeat = 'data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"index":0}]}\r\n\r\n'

const target: AnswerTarget = {
  requestId: 'req_1',
  model: 'google/gemini-3',
  createdS: 1,
  wantsUsage: true,
  choices: 1,
  json: {},
  losses: new Losses(),
}

interface Failure {
  readonly status: number
  readonly kind: ErrorKind
  readonly message: string
}

/** The answer to the next call, and the conversation that was read from the last call. */
let answer: Answer | Failure
let conversation: Conversation | undefined

function serve(request: Request, body: Buffer): Response {
  const url = new URL(request.url)
  const path = decodeURIComponent(url.pathname)
  const json = (text: string, status = 200): Response =>
    new Response(text, { status, headers: { 'content-type': 'application/json' } })
  if (request.method === 'GET') {
    const traits = { thinking: 'level' } as const
    const model = { name: 'Gemini', provider: 'google', contextTokens: 1000, outputTokensMax: 100, traits }
    const list = (): string => writeModelList([{ ...model, id: 'google/gemini-3' }], {})
    return json(path.endsWith('/models') ? list() : writeModel({ ...model, id: path.replace('/v1beta/models/', '') }))
  }
  const head = { path, query: (name: string) => url.searchParams.get(name), header: () => undefined }
  const verb = readPath(path)?.method
  if (verb === 'countTokens') return json(writeCount({ tokens: readCountCall(body, head).bodyBytes }))
  if (verb === 'embedContent' || verb === 'batchEmbedContents') {
    const protocol = verb === 'embedContent' ? embedContent : batchEmbedContents
    const call = protocol.readCall(body, head)
    const { inputs, dimensions = 0 } = protocol.vectors.readRequest(call)
    return json(protocol.vectors.writeResult({ vectors: inputs.map(text => [text.length, dimensions]) }, call))
  }
  const call = gemini.readCall(body, head)
  conversation = gemini.codec.readConversation(call)
  if ('status' in answer) {
    const error = gemini.writeError({ ...answer, code: 'upstream_failed', requestId: 'req_1' })
    return json(error.body, error.status)
  }
  if (!call.stream) return json(gemini.codec.writeWholeAnswer(answer, target))
  const writer = gemini.codec.openEventWriter(target)
  const frames =
    toEvents(answer)
      .map(event => writer.write(event))
      .join('') + writer.end()
  return new Response(heartbeat + frames, { headers: { 'content-type': 'text/event-stream' } })
}

const server = Bun.serve({
  port: 0,
  fetch: async request => serve(request, Buffer.from(await request.arrayBuffer())),
})
afterAll(() => server.stop(true))

const baseUrl = server.url.origin
const genai = new GoogleGenAI({ apiKey: 'wk-x', httpOptions: { baseUrl } })
const legacy = new GoogleGenerativeAI('wk-x').getGenerativeModel({ model: 'google/gemini-3' }, { baseUrl })
const viaAi = createGoogleGenerativeAI({ apiKey: 'wk-x', baseURL: `${baseUrl}/v1beta` })('google/gemini-3')
const model = 'google/gemini-3'

const usage = { input: 5, output: 3, reasoning: 2 }
const textAnswer: Answer = { choices: [{ parts: [{ kind: 'text', text: 'Hello world' }], finish: 'stop' }], usage }
const thinkingAnswer: Answer = {
  choices: [
    {
      parts: [
        { kind: 'reasoning', text: 'Let me think.', sealed: { form: 'signature', value: 'S', origin: 'o' } },
        { kind: 'text', text: 'Hello world' },
      ],
      finish: 'stop',
    },
  ],
  usage,
}
const callsAnswer: Answer = {
  choices: [
    {
      parts: [
        {
          kind: 'call',
          id: 'c1',
          name: 'get_weather',
          arguments: '{"city":"Paris"}',
          sealed: { form: 'encrypted', value: 'E', origin: 'o' },
        },
        { kind: 'call', id: 'c2', name: 'get_weather', arguments: '{"city":"Rome"}' },
      ],
      finish: 'calls',
    },
  ],
  usage,
}
const cities = [{ city: 'Paris' }, { city: 'Rome' }]
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const
const failures: readonly Failure[] = [
  { status: 400, kind: 'invalid_request', message: 'bad' },
  { status: 401, kind: 'authentication', message: 'who' },
  { status: 404, kind: 'not_found', message: 'where' },
  { status: 429, kind: 'rate_limit', message: 'slow' },
  { status: 503, kind: 'overloaded', message: 'busy' },
]

describe('@google/genai', () => {
  const stream = async (config = {}) => {
    const chunks = []
    const streamed = await genai.models.generateContentStream({ model, contents: 'hi', config })
    for await (const chunk of streamed) chunks.push(chunk)
    return chunks
  }

  test('reads text', async () => {
    answer = textAnswer
    const plain = await genai.models.generateContent({ model, contents: 'hi' })
    expect([plain.text, plain.usageMetadata?.totalTokenCount, plain.responseId]).toEqual(['Hello world', 10, 'req_1'])
    const chunks = await stream()
    expect(chunks.map(chunk => chunk.text ?? '').join('')).toBe('Hello world')
    expect(chunks.at(-1)?.candidates?.[0]?.finishReason as string).toBe('STOP')
    expect(chunks.at(-1)?.usageMetadata?.thoughtsTokenCount).toBe(2)
  })

  test('reads several tool calls at once', async () => {
    answer = callsAnswer
    const config = { tools: [{ functionDeclarations: [{ name: 'get_weather', parametersJsonSchema: schema }] }] }
    const plain = await genai.models.generateContent({ model, contents: 'hi', config })
    expect(plain.functionCalls?.map(call => [call.id, call.args])).toEqual([
      ['c1', cities[0]!],
      ['c2', cities[1]!],
    ])
    const streamed = (await stream(config)).flatMap(chunk => chunk.functionCalls ?? [])
    expect(streamed.map(call => call.args)).toEqual([...cities])
    expect(conversation?.tools).toEqual([{ kind: 'function', name: 'get_weather', schema }])
  })

  test('P25: sends thoughts and reasoning state of a chat back unchanged', async () => {
    answer = thinkingAnswer
    const chat = genai.chats.create({ model })
    for await (const _chunk of await chat.sendMessageStream({ message: 'hi' }));
    await chat.sendMessage({ message: 'and?' })
    expect(conversation?.messages as unknown).toEqual([
      { role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
      { role: 'assistant', parts: thinkingAnswer.choices[0]!.parts },
      { role: 'user', parts: [{ kind: 'text', text: 'and?' }] },
    ])
  })

  test.each(failures)('reports an error: %j', async failure => {
    answer = failure
    const fault = await genai.models.generateContent({ model, contents: 'hi' }).catch((error: unknown) => error)
    expect(fault).toBeInstanceOf(ApiError)
    expect((fault as ApiError).status).toBe(failure.status)
    expect((fault as ApiError).message).toContain(failure.message)
  })

  test('reads token counts, embeddings and models', async () => {
    expect((await genai.models.countTokens({ model, contents: 'hi' })).totalTokens).toBeGreaterThan(0)
    const config = { outputDimensionality: 8 }
    const { embeddings } = await genai.models.embedContent({ model, contents: ['a', 'bcd'], config })
    expect(embeddings?.map(each => each.values)).toEqual([
      [1, 8],
      [3, 8],
    ])
    const listed = []
    for await (const each of await genai.models.list()) listed.push(each)
    expect(listed).toMatchObject([{ name: 'models/google/gemini-3', inputTokenLimit: 1000 }])
    expect(listed[0]!.supportedActions).toContain('generateContent')
    expect((await genai.models.get({ model })).name).toBe('models/google/gemini-3')
  })
})

describe('@google/generative-ai', () => {
  test('reads text and tool calls', async () => {
    answer = textAnswer
    expect((await legacy.generateContent('hi')).response.text()).toBe('Hello world')
    const streamed = await legacy.generateContentStream('hi')
    let text = ''
    for await (const chunk of streamed.stream) text += chunk.text()
    expect([text, (await streamed.response).usageMetadata?.totalTokenCount]).toEqual(['Hello world', 10])
    answer = callsAnswer
    expect((await legacy.generateContent('hi')).response.functionCalls()?.map(call => call.args)).toEqual([...cities])
    const { response } = await legacy.generateContentStream('hi')
    expect((await response).functionCalls()?.map(call => call.args)).toEqual([...cities])
  })

  test('reads token counts and embeddings', async () => {
    expect((await legacy.countTokens('hi')).totalTokens).toBeGreaterThan(0)
    expect((await legacy.embedContent('abc')).embedding.values).toEqual([3, 0])
  })

  test.each(failures)('reports an error: %j', async failure => {
    answer = failure
    const fault = await legacy.generateContent('hi').catch((error: unknown) => error)
    expect(fault).toMatchObject({ status: failure.status, message: expect.stringContaining(failure.message) })
  })
})

describe('AI SDK', () => {
  const tools = { get_weather: tool({ inputSchema: jsonSchema(schema) }) } as unknown as ToolSet

  test('reads text and thoughts', async () => {
    answer = thinkingAnswer
    const plain = await generateText({ model: viaAi, prompt: 'hi' })
    expect([plain.text, plain.reasoningText, plain.finishReason]).toEqual(['Hello world', 'Let me think.', 'stop'])
    expect(plain.usage).toMatchObject({ inputTokens: 5, outputTokens: 5, totalTokens: 10 })
    const streamed = streamText({ model: viaAi, prompt: 'hi' })
    expect([await streamed.text, await streamed.reasoningText]).toEqual(['Hello world', 'Let me think.'])
  })

  test('reads several tool calls at once, and sends their reasoning state back', async () => {
    answer = callsAnswer
    const plain = await generateText({ model: viaAi, prompt: 'hi', tools })
    expect(plain.toolCalls.map(call => call.input as object)).toEqual([...cities])
    expect(plain.finishReason).toBe('tool-calls')
    const streamed = streamText({ model: viaAi, prompt: 'hi', tools })
    expect((await streamed.toolCalls).map(call => call.input as object)).toEqual([...cities])
    const results = plain.toolCalls.map(({ toolCallId, toolName }) => {
      return { type: 'tool-result', toolCallId, toolName, output: { type: 'text', value: 'warm' } } as const
    })
    const history = [{ role: 'user', content: 'hi' } as const, ...plain.response.messages]
    answer = textAnswer
    await generateText({ model: viaAi, messages: [...history, { role: 'tool', content: results }], tools })
    const sealed = { form: 'encrypted', value: 'E', origin: 'o' }
    expect(conversation?.messages[1]?.parts[0]).toMatchObject({ kind: 'call', sealed })
    expect(conversation?.messages[2]).toMatchObject({ role: 'tool', parts: [{ kind: 'result' }, { kind: 'result' }] })
  })

  test.each(failures)('reports an error: %j', async failure => {
    answer = failure
    const fault = await generateText({ model: viaAi, prompt: 'hi', maxRetries: 0 }).catch((error: unknown) => error)
    expect(fault).toMatchObject({ statusCode: failure.status, message: failure.message })
  })
})
