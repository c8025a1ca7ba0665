// Tests that SDKs read the written responses: two of OpenAI's SDKs and Vercel's.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createOpenAI } from '@ai-sdk/openai'
import type { ToolSet } from 'ai'
import { APICallError, generateText, jsonSchema, streamText, tool } from 'ai'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { answerTargetOf } from '../../../test/support/responses-wire.ts'
import { buildErrorReply, Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Answer, AnswerPart, Finish } from '../neutral/answer.ts'
import { toEvents } from '../neutral/answer-collector.ts'
import { protocols } from '../protocols.ts'

const { codec, writeError } = protocols['openai-responses']

const answerOf = (finish: Finish, ...parts: readonly AnswerPart[]): Answer => ({
  choices: [{ parts, finish }],
  usage: { input: 40, cacheRead: 60, output: 30, reasoning: 10 },
})

const text: AnswerPart = { kind: 'text', text: 'Hello world' }
const thinkingPart: AnswerPart = {
  kind: 'reasoning',
  text: 'hm',
  sealed: { origin: 'o', form: 'signature', value: 'Er' },
}
const callPart: AnswerPart = { kind: 'call', id: 'call_a', name: 'get_weather', arguments: '{"city":"Paris"}' }
const citedPart: AnswerPart = {
  kind: 'text',
  text: 'Cited',
  citations: [{ url: 'https://a.example', title: 't', start: 0, end: 5 }],
}

const cases: Readonly<Record<string, Answer>> = {
  'text': answerOf('stop', text),
  'cited': answerOf('stop', citedPart, text),
  'tools': answerOf('calls', callPart),
  'parallel-tools': answerOf('calls', text, callPart, { ...callPart, id: 'call_b', arguments: '{"city":"Rome"}' }),
  'reasoning': answerOf('stop', thinkingPart, text),
  'raw-reasoning': answerOf('stop', { kind: 'reasoning', text: 'raw', raw: true }, text),
  'incomplete': answerOf('length', text),
  'refusal': answerOf('filtered', { kind: 'refusal', text: 'I cannot.' }),
  'signed-call': answerOf('calls', { ...callPart, sealed: { origin: 'o', form: 'thought', value: 's' } }),
}

const errors = {
  'error-400': new Refusal('field_invalid', 'x', { param: 'n', hint: hintOf('call_previous_is', { status: 'n' }) }),
  'error-401': new Refusal('key_invalid', 'x'),
  'error-404': new Refusal('model_unknown', 'x'),
  'error-429': new Refusal('qpm_exceeded', 'x'),
  'error-503': new Refusal('no_channel', 'x'),
}

/** Answers with the case that has the name of the model. `broken` ends in the middle. */
async function answer(request: Request): Promise<Response> {
  const { model, stream } = (await request.json()) as { model: string; stream?: boolean }
  const error = errors[model as keyof typeof errors]
  if (error !== undefined) {
    const { status, body } = writeError(buildErrorReply(error, 'req_1'))
    return new Response(body, { status, headers: { 'content-type': 'application/json', 'x-should-retry': 'false' } })
  }
  const response = cases[model === 'broken' ? 'text' : model]!
  const target = answerTargetOf({ model, json: { model, input: 'hi' } })
  if (!stream) return Response.json(JSON.parse(codec.writeWholeAnswer(response, target)))
  const writer = codec.openEventWriter(target)
  let sse = ''
  for (const event of toEvents(response)) sse += writer.write(event)
  const broken = buildErrorReply(new Refusal('upstream_failed', 'x'), 'req_1')
  sse += model === 'broken' ? writeError(broken).events : writer.end()
  return new Response(sse, { headers: { 'content-type': 'text/event-stream' } })
}

let server: ReturnType<typeof Bun.serve>
let baseURL = ''
beforeAll(() => {
  server = Bun.serve({ port: 0, fetch: answer })
  baseURL = `http://127.0.0.1:${server.port}/v1`
})
afterAll(() => server.stop(true))

const options = () => ({ baseURL, apiKey: 'wk-x', maxRetries: 0 })

/** The types of the two SDKs differ in ways that do not matter here. */
const clients = {
  'openai 7': () => new OpenAI(options()),
  'openai 6': () => new OpenAI6(options()) as unknown as OpenAI,
}

describe.each(Object.entries(clients))('%s', (_, client) => {
  test.each(Object.keys(cases))('P5, P6: reads %s, plain and streamed, with the same result', async model => {
    const plain = await client().responses.create({ model, input: 'hi' })
    const final = await client().responses.stream({ model, input: 'hi' }).finalResponse()
    const outputOf = ({ output }: OpenAI.Responses.Response) =>
      JSON.parse(JSON.stringify(output, dropParsed)) as unknown
    expect(outputOf(final)).toEqual(outputOf(plain))
    expect(final.output_text).toBe(plain.output_text)
    expect(final.id).toBe('resp_0123456789a')
    expect(final.status).toBe(model === 'incomplete' ? 'incomplete' : 'completed')
    expect(final.usage).toMatchObject({ input_tokens: 100, output_tokens: 40, total_tokens: 140 })
  })

  test('reads the raw stream', async () => {
    const types: string[] = []
    for await (const event of await client().responses.create({ model: 'text', input: 'hi', stream: true })) {
      types.push(event.type)
    }
    expect([types[0], types.at(-1)]).toEqual(['response.created', 'response.completed'])
  })

  test.each([
    ['error-400', 'BadRequestError'],
    ['error-401', 'AuthenticationError'],
    ['error-404', 'NotFoundError'],
    ['error-429', 'RateLimitError'],
    ['error-503', 'InternalServerError'],
  ])('raises its own error for %s: %s', async (model, kind) => {
    const failure = await client()
      .responses.create({ model, input: 'hi' })
      .catch((error: unknown) => error)
    expect((failure as Error).constructor.name).toBe(kind)
    expect((failure as Error).message).toContain(model === 'error-400' ? 'It is n.' : ' ')
  })

  test('P7: throws the error that ends a stream', async () => {
    const run = async (): Promise<void> => {
      for await (const _ of await client().responses.create({ model: 'broken', input: 'hi', stream: true }));
    }
    const failure = await run().catch((error: unknown) => error)
    expect((failure as Error).message).toContain('broke off')
  })
})

const dropParsed = (key: string, value: unknown): unknown =>
  key === 'parsed' || key === 'parsed_arguments' ? undefined : value

describe('AI SDK', () => {
  const model = (name: string) => createOpenAI({ baseURL, apiKey: 'wk-x' }).responses(name)
  const tools: ToolSet = {
    get_weather: tool({
      inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
    }),
  }
  const common = { prompt: 'hi', maxRetries: 0, tools }

  test.each(Object.keys(cases))('reads %s, plain and streamed, with the same result', async name => {
    const plain = await generateText({ model: model(name), ...common })
    const faults: unknown[] = []
    const stream = streamText({ model: model(name), ...common, onError: ({ error }) => void faults.push(error) })
    await stream.consumeStream()
    expect(faults).toEqual([])
    expect(await stream.text).toBe(plain.text)
    expect(await stream.finishReason).toBe(plain.finishReason)
    type Calls = readonly { readonly toolName: string; readonly input: unknown }[]
    const calls = (list: Calls) => list.map(({ toolName, input }) => [toolName, input])
    expect(calls(await stream.toolCalls)).toEqual(calls(plain.toolCalls))
    expect((await stream.usage).inputTokens).toBe(100)
    expect(plain.usage.outputTokens).toBe(40)
    expect((await stream.reasoningText) ?? '').toBe(plain.reasoningText ?? '')
  })

  test.each([
    ['text', 'stop'],
    ['parallel-tools', 'tool-calls'],
    ['incomplete', 'length'],
  ])('reads the finish reason of %s: %s', async (name, reason) => {
    const plain = await generateText({ model: model(name), ...common })
    expect<string>(plain.finishReason).toBe(reason)
  })

  test('P8: reports the error that ends a stream', async () => {
    const faults: unknown[] = []
    const stream = streamText({ model: model('broken'), ...common, onError: ({ error }) => void faults.push(error) })
    await stream.consumeStream()
    expect(JSON.stringify(faults)).toContain('broke off')
    expect(faults.some(fault => String(fault).includes('Type validation'))).toBe(false)
  })

  test.each([
    ['error-401', 401],
    ['error-429', 429],
  ])('raises %s', async (name, status) => {
    const failure = await generateText({ model: model(name), ...common }).catch((error: unknown) => error)
    expect(APICallError.isInstance(failure) && failure.statusCode).toBe(status)
  })
})
