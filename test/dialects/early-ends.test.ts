// Streams that pass unchanged and are ended early because the funds are used up, at every awkward place: official SDKs
// accept the end, no client takes a cut tool call for one to run, and the usage in the end is the usage that is billed.
// Plain calls are collected from the same streams.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import type { LanguageModel } from 'ai'
import { generateText, jsonSchema, streamText, tool } from 'ai'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { answer } from '../../tools/fake-upstream/answers.ts'
import { sends } from '../forwarding/wire.ts'
import type { Harness } from '../support/gateway.ts'
import { hello } from '../support/gateway.ts'
import { citySchema } from './clients/client.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, modelsWithoutThinking, startDialects } from './upstreams.ts'

type Event = Record<string, unknown> & { readonly type?: string }

let harness: Harness
beforeAll(async () => {
  harness = await startDialects({ models: modelsWithoutThinking })
})
afterAll(() => harness.stop())

/** About 400 tokens of output at $2 a million, and 1,000 of input at $1. */
const LITTLE = '0.0018'
/** More tokens than these funds cover: the stream ends before the event that has this text. */
const TOO_MUCH = 'word'.repeat(4_000)

const named = (events: readonly Event[]): string =>
  events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
const unnamed = (events: readonly Event[]): string => events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')

/** A new key, and a stream that its funds do not cover. */
async function planned(wire: string, uses = 1): Promise<string> {
  for (let use = 0; use < uses; use++) harness.upstream.plan(sends(wire))
  return await harness.key({ credit: LITTLE })
}

async function lastRecord(status = 200): Promise<Record<string, unknown>> {
  await harness.idle()
  const record = harness.lastRecord()!
  expect(record).toMatchObject({ outcome: 'out_of_funds', status, shortfall: 0 })
  return record
}

/** The model of an upstream that speaks the dialect of the caller. */
const native = (dialect: Dialect): string => modelOf(dialect, 'lorem')

async function listOf<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const event of stream) list.push(event)
  return list
}

/** The calls that a client of Vercel's SDK gets and takes for valid, streamed and plain, and how many of them it runs. */
async function validCalls(wire: string, connect: (key: string) => LanguageModel): Promise<readonly unknown[]> {
  const runs: unknown[] = []
  const execute = (input: unknown): string => `run ${runs.push(input)}`
  const tools = { weather: tool({ inputSchema: jsonSchema<{ city?: string }>(citySchema), execute }) }
  const call = { prompt: 'Weather?', tools, maxRetries: 0 }
  const streamed = streamText({ ...call, model: connect(await planned(wire)), onError: () => {} })
  await streamed.consumeStream()
  const streamedCalls = await streamed.toolCalls
  await lastRecord()
  const plain = await generateText({ ...call, model: connect(await planned(wire)) })
  await lastRecord()
  const calls = [...streamedCalls, ...plain.toolCalls].filter(one => one.invalid !== true)
  return [...calls.map(({ input }) => input), ...runs]
}

describe('openai-responses', () => {
  const response = {
    id: 'resp_up',
    object: 'response',
    created_at: 1,
    status: 'in_progress',
    model: 'up',
    vendor: 'kept',
  }
  const started: Event[] = ['response.created', 'response.in_progress'].map(type => ({
    type,
    response: { ...response, output: [], error: null, incomplete_details: null, tools: [], usage: null },
  }))
  const added = (at: number, item: object): Event => ({ type: 'response.output_item.added', output_index: at, item })
  const itemDone = (at: number, item: object): Event => ({ type: 'response.output_item.done', output_index: at, item })
  const message = { id: 'msg_up', type: 'message', status: 'in_progress', role: 'assistant', content: [] }
  const textAt = { item_id: 'msg_up', output_index: 0, content_index: 0 }
  const part = { type: 'output_text', text: '', annotations: [], logprobs: [] }
  const openText: Event[] = [
    added(0, message),
    { type: 'response.content_part.added', ...textAt, part },
    { type: 'response.output_text.delta', ...textAt, delta: 'Hi', logprobs: [] },
  ]
  const doneText: Event[] = [
    ...openText,
    { type: 'response.output_text.done', ...textAt, text: 'Hi', logprobs: [] },
    { type: 'response.content_part.done', ...textAt, part: { ...part, text: 'Hi' } },
    itemDone(0, { ...message, status: 'completed', content: [{ ...part, text: 'Hi' }] }),
  ]
  const reasoning = { id: 'rs_up', type: 'reasoning', summary: [] }
  const thoughtAt = { item_id: 'rs_up', output_index: 1, summary_index: 0 }
  const call = {
    id: 'fc_up',
    type: 'function_call',
    status: 'in_progress',
    call_id: 'call_1',
    name: 'weather',
    arguments: '',
  }
  const callDelta = (delta: string): Event => ({
    type: 'response.function_call_arguments.delta',
    item_id: 'fc_up',
    output_index: 1,
    delta,
  })
  const custom = {
    id: 'ctc_up',
    type: 'custom_tool_call',
    status: 'in_progress',
    call_id: 'call_1',
    name: 'sh',
    input: '',
  }
  const summary = { type: 'summary_text', text: '' }
  const emptyThought = { ...reasoning, id: 'rs_0' }
  const later = (events: readonly Event[]): Event[] =>
    events.map(event => JSON.parse(JSON.stringify(event).replace('"output_index":0', '"output_index":1')))

  const cases: readonly (readonly [name: string, events: readonly Event[], open: object])[] = [
    ['in a text', openText, { id: 'msg_up', status: 'incomplete', content: [{ text: 'Hi' }] }],
    [
      'in a text after an empty reasoning item',
      [added(0, emptyThought), itemDone(0, emptyThought), ...later(openText)],
      { id: 'msg_up', status: 'incomplete' },
    ],
    [
      'in a message without a part',
      [...doneText, added(1, { ...message, id: 'msg_2' })],
      { id: 'msg_2', status: 'incomplete', content: [] },
    ],
    [
      'in a part without a delta',
      [
        ...doneText,
        added(1, { ...message, id: 'msg_2' }),
        { type: 'response.content_part.added', item_id: 'msg_2', output_index: 1, content_index: 0, part },
      ],
      { id: 'msg_2', status: 'incomplete', content: [{ text: '' }] },
    ],
    ['in an empty reasoning item', [...doneText, added(1, reasoning)], { id: 'rs_up', status: 'incomplete' }],
    [
      'in a summary without a delta',
      [
        ...doneText,
        added(1, reasoning),
        { type: 'response.reasoning_summary_part.added', ...thoughtAt, part: summary },
      ],
      { id: 'rs_up', status: 'incomplete' },
    ],
    [
      'in a summary',
      [
        ...doneText,
        added(1, reasoning),
        { type: 'response.reasoning_summary_part.added', ...thoughtAt, part: summary },
        { type: 'response.reasoning_summary_text.delta', ...thoughtAt, delta: 'Well,' },
      ],
      { id: 'rs_up', status: 'incomplete', summary: [{ type: 'summary_text', text: 'Well,' }] },
    ],
    [
      'in a refusal',
      [
        ...doneText,
        added(1, { ...message, id: 'msg_2' }),
        {
          type: 'response.content_part.added',
          ...{ item_id: 'msg_2', output_index: 1, content_index: 0 },
          part: { type: 'refusal', refusal: '' },
        },
        { type: 'response.refusal.delta', item_id: 'msg_2', output_index: 1, content_index: 0, delta: 'No' },
      ],
      { id: 'msg_2', status: 'incomplete', content: [{ type: 'refusal', refusal: 'No' }] },
    ],
    [
      'in a call without arguments',
      [...doneText, added(1, call)],
      { id: 'fc_up', status: 'incomplete', arguments: '{' },
    ],
    [
      'in the arguments of a call',
      [...doneText, added(1, call), callDelta('{"city":"Pa')],
      { id: 'fc_up', status: 'incomplete', arguments: '{"city":"Pa' },
    ],
    [
      'in the input of a custom tool',
      [
        ...doneText,
        added(1, custom),
        { type: 'response.custom_tool_call_input.delta', item_id: 'ctc_up', output_index: 1, delta: 'rm' },
      ],
      { id: 'ctc_up', status: 'incomplete', input: 'rm' },
    ],
    [
      'in an item of an unknown type',
      [...doneText, added(1, { id: 'v_1', type: 'vendor_call', status: 'in_progress', vendor: { a: 1 } })],
      { id: 'v_1', type: 'vendor_call', status: 'incomplete', vendor: { a: 1 } },
    ],
    [
      'in a search',
      [...doneText, added(1, { id: 'ws_1', type: 'web_search_call', status: 'in_progress' })],
      { id: 'ws_1', status: 'failed' },
    ],
    ['in two items at once', [...openText, added(1, call), callDelta('{"a')], { id: 'fc_up', status: 'incomplete' }],
  ]
  const wireOf = (events: readonly Event[]): string => {
    const tooMuch = { type: 'response.reasoning_text.delta', item_id: 'x', output_index: 9, delta: TOO_MUCH }
    return named([...started, ...events, tooMuch].map((event, at) => ({ ...event, sequence_number: at })))
  }
  const params = { model: native('openai-responses'), input: 'Count', store: false } as const

  /** Each item and part that was added is done once, at its own index, and the last event repeats all items. */
  function check(events: readonly Event[]): Event {
    expect(events.map(event => event.sequence_number)).toEqual(events.map((_, at) => at))
    const of = (type: string): Event[] => events.filter(event => event.type === `response.${type}`)
    const idOf = ({ item }: Event): string => (item as { id: string }).id
    const byIndex = (list: readonly Event[]): string[] => list.map(one => `${one.output_index} ${idOf(one)}`).sort()
    expect(byIndex(of('output_item.done'))).toEqual(byIndex(of('output_item.added')))
    for (const [begin, ending] of [
      ['content_part.added', 'content_part.done'],
      ['reasoning_summary_part.added', 'reasoning_summary_part.done'],
    ] as const) {
      const places = (list: readonly Event[]): string[] =>
        list.map(one => [one.item_id, one.output_index, one.content_index ?? one.summary_index].join(' ')).sort()
      expect(places(of(ending))).toEqual(places(of(begin)))
    }
    const last = events.at(-1)! as Event & { response: { output: object[] } }
    const done = of('output_item.done').sort((a, b) => Number(a.output_index) - Number(b.output_index))
    expect(last.response.output).toEqual(done.map(({ item }) => item as object))
    expect(last).toMatchObject({
      type: 'response.incomplete',
      weir_stop: 'balance_too_low',
      response: { ...response, status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
    })
    return last.response as unknown as Event
  }

  test.each(cases)('a stream that ends %s', async (_name, events, open) => {
    for (const Sdk of [OpenAI, OpenAI6 as unknown as typeof OpenAI]) {
      const connect = (apiKey: string) => new Sdk({ apiKey, baseURL: `${harness.url}/v1`, maxRetries: 0 })
      const raw = await connect(await planned(wireOf(events))).responses.create({ ...params, stream: true })
      const last = check((await listOf(raw)) as unknown as Event[]) as Event & { output: object[] }
      expect(last.output.at(-1)).toMatchObject(open)
      const { input_tokens, output_tokens } = await lastRecord()
      expect(last.usage).toMatchObject({ input_tokens, output_tokens })
      const final = await connect(await planned(wireOf(events)))
        .responses.stream(params)
        .finalResponse()
      expect(final).toMatchObject({ id: 'resp_up', status: 'incomplete', usage: { output_tokens } })
      expect(final.output.at(-1)).toMatchObject(open)
    }
  })

  test.each(cases)('a plain answer that ends %s', async (_name, events, open) => {
    const { responses } = new OpenAI({
      apiKey: await planned(wireOf(events)),
      baseURL: `${harness.url}/v1`,
      maxRetries: 0,
    })
    const reply = await responses.create(params)
    const { input_tokens, output_tokens } = await lastRecord()
    expect(reply).toMatchObject({
      ...response,
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      usage: { input_tokens, output_tokens },
    })
    expect(reply.output_text).toStartWith('Hi')
    // What was cut before it had any content is left out.
    const { arguments: args, content, id } = open as { arguments?: string; content?: { text?: string }[]; id: string }
    const isEmpty = args === '{' || content?.every(one => one.text === '') || id === 'rs_up'
    if (!isEmpty) expect(reply.output.at(-1)).toMatchObject(open)
    else if (id !== 'rs_up') expect(reply.output.map(item => item.id)).not.toContain(id)
  })

  test('the end names the previous response as the caller knows it', async () => {
    const key = await harness.key({ credit: LITTLE })
    const { responses } = new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1`, maxRetries: 0 })
    const model = native('openai-responses')
    harness.upstream.plan(answer('Hello', { usage: { input: 2, output: 2 } }))
    const first = await responses.create({ model, input: 'Hi' })
    harness.upstream.plan(sends(wireOf(openText)))
    const final = await responses.stream({ model, input: 'Count', previous_response_id: first.id }).finalResponse()
    expect(final).toMatchObject({ status: 'incomplete', previous_response_id: first.id, output_text: 'Hi' })
    await lastRecord()
  })

  test('no client takes a cut call for a valid one', async () => {
    const model = native('openai-responses')
    for (const delta of [[], [callDelta('{"city":"Pa')]]) {
      const wire = wireOf([...doneText, added(1, call), ...delta])
      const connect = (apiKey: string) => createOpenAI({ baseURL: `${harness.url}/v1`, apiKey }).responses(model)
      expect(await validCalls(wire, connect)).toEqual([])
    }
  })
})

describe('anthropic-messages', () => {
  const start: Event = {
    type: 'message_start',
    message: {
      ...{ id: 'msg_up', type: 'message', role: 'assistant', model: 'up', content: [], vendor: 'kept' },
      ...{ stop_reason: null, stop_sequence: null },
      usage: { input_tokens: 17, cache_read_input_tokens: 5, output_tokens: 1, service_tier: 'standard' },
    },
  }
  const block = (index: number, content_block: object): Event => ({ type: 'content_block_start', index, content_block })
  const delta = (index: number, type: string, more: object): Event => ({
    type: 'content_block_delta',
    index,
    delta: { type, ...more },
  })
  const stop = (index: number): Event => ({ type: 'content_block_stop', index })
  const openText = [start, block(0, { type: 'text', text: '' }), delta(0, 'text_delta', { text: 'Hi' })]
  const doneText = [...openText, stop(0)]
  const use = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }
  const serverUse = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
  const thinking = { type: 'thinking', thinking: '', signature: '' }
  const input = (text: string): Event => delta(1, 'input_json_delta', { partial_json: text })

  /** `kept`: whether a plain answer has the block that was cut. */
  const cases: readonly (readonly [name: string, events: readonly Event[], kept: boolean])[] = [
    ['in a text', openText, true],
    ['between two blocks', doneText, true],
    ['in an empty text', [...doneText, block(1, { type: 'text', text: '' })], false],
    ['in a call without input', [...doneText, block(1, use)], false],
    ['in the input of a call', [...doneText, block(1, use), input('{"city":"Pa')], false],
    ['in a call of the provider', [...doneText, block(1, serverUse)], false],
    ['in the input of a call of the provider', [...doneText, block(1, serverUse), input('{"q')], false],
    ['in empty thoughts', [...doneText, block(1, thinking)], false],
    ['in thoughts', [...doneText, block(1, thinking), delta(1, 'thinking_delta', { thinking: 'Well,' })], true],
    ['in a block of an unknown type', [...doneText, block(1, { type: 'vendor_block', vendor: 1 })], true],
  ]
  const wireOf = (events: readonly Event[]): string =>
    named([...events, block(events.length, { type: 'text', text: TOO_MUCH })])
  const params = {
    model: native('anthropic-messages'),
    max_tokens: 4_000,
    messages: [{ role: 'user' as const, content: 'Hi' }],
  }
  const connect = (apiKey: string) => new Anthropic({ apiKey, baseURL: harness.url, maxRetries: 0 })

  test.each(cases)('a stream that ends %s', async (_name, events) => {
    const { messages } = connect(await planned(wireOf(events)))
    const all = (await listOf(await messages.create({ ...params, stream: true }))) as unknown as Event[]
    const indexes = (type: string): unknown[] => all.filter(event => event.type === type).map(event => event.index)
    expect(indexes('content_block_stop')).toEqual(indexes('content_block_start'))
    expect(all.slice(-2)).toMatchObject([
      { type: 'message_delta', weir_stop: 'balance_too_low', delta: { stop_reason: 'max_tokens' } },
      { type: 'message_stop' },
    ])
    const record = await lastRecord()
    // The input was reported in the first event.
    expect(all.at(-2)!.usage).toMatchObject({
      input_tokens: 17,
      cache_read_input_tokens: 5,
      output_tokens: record.output_tokens,
    })
    expect(record.input_tokens).toBe(22)
    const final = await connect(await planned(wireOf(events)))
      .messages.stream(params)
      .finalMessage()
    expect(final).toMatchObject({
      id: 'msg_up',
      stop_reason: 'max_tokens',
      usage: { output_tokens: record.output_tokens },
    })
    expect(final.content).toHaveLength(events.filter(event => event.type === 'content_block_start').length)
    // Thoughts without a signature would be refused in the next request.
    for (const one of final.content) if (one.type === 'thinking') expect(one.signature).not.toBe('')
  })

  test.each(cases)('a plain answer that ends %s', async (_name, events, kept) => {
    const reply = await connect(await planned(wireOf(events))).messages.create(params)
    const { output_tokens } = await lastRecord()
    expect(reply).toMatchObject({
      ...{ id: 'msg_up', vendor: 'kept', stop_reason: 'max_tokens', stop_sequence: null },
      usage: { input_tokens: 17, cache_read_input_tokens: 5, output_tokens, service_tier: 'standard' },
    })
    const begun = events.filter(event => event.type === 'content_block_start').length
    expect(reply.content).toHaveLength(kept ? begun : begun - 1)
    expect(reply.content[0]).toMatchObject({ type: 'text', text: 'Hi' })
  })

  test('no client takes a cut call for a valid one', async () => {
    for (const more of [[], [input('{"city":"Pa')]]) {
      const wire = wireOf([...doneText, block(1, use), ...more])
      const model = native('anthropic-messages')
      const vercel = (apiKey: string) => createAnthropic({ baseURL: `${harness.url}/v1`, apiKey })(model)
      expect(await validCalls(wire, vercel)).toEqual([])
      let runs = 0
      const run = () => `run ${++runs}`
      const tools = [
        { name: 'weather', input_schema: citySchema, run, parse: (json: unknown) => json, description: '' },
      ]
      for (const stream of [true, false]) {
        const runner = connect(await planned(wire)).beta.messages.toolRunner({ ...params, tools, stream } as never)
        await (runner as unknown as Promise<unknown>)
        await lastRecord()
      }
      expect(runs).toBe(0)
    }
  })
})

describe('openai-chat', () => {
  const head = {
    id: 'chatcmpl-up',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'up',
    system_fingerprint: 'fp_up',
  }
  const piece = (delta: object, index = 0, finish_reason: string | null = null): Event => ({
    ...head,
    choices: [{ index, delta, logprobs: null, finish_reason }],
  })
  const hi = [piece({ role: 'assistant', content: '' }), piece({ content: 'Hi' })]
  const call = (more: object): Event => piece({ tool_calls: [{ index: 0, ...more }] })
  const opened = call({ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } })
  const cases: readonly (readonly [name: string, events: readonly Event[], finishes: readonly string[]])[] = [
    ['in a text', hi, ['length']],
    ['in thoughts', [...hi, piece({ reasoning_content: 'Well,' })], ['length']],
    ['in a call without arguments', [...hi, opened], ['length']],
    ['in the arguments of a call', [...hi, opened, call({ function: { arguments: '{"ci' } })], ['length']],
    [
      'in one of two choices',
      [...hi, piece({ role: 'assistant', content: 'Ho' }, 1), piece({}, 1, 'stop')],
      ['length', 'stop'],
    ],
    ['in two choices', [...hi, piece({ role: 'assistant', content: 'Ho' }, 1)], ['length', 'length']],
    ['before the second choice', hi, ['length', 'length']],
  ]
  const wireOf = (events: readonly Event[]): string => unnamed([...events, piece({ content: TOO_MUCH })])
  const paramsOf = (n: number) => ({ model: native('openai-chat'), messages: hello as never, n })

  test.each(cases)('a stream that ends %s', async (_name, events, finishes) => {
    for (const Sdk of [OpenAI, OpenAI6 as unknown as typeof OpenAI]) {
      const connect = (apiKey: string) => new Sdk({ apiKey, baseURL: `${harness.url}/v1`, maxRetries: 0 })
      const params = { ...paramsOf(finishes.length), stream_options: { include_usage: true } }
      const { completions } = connect(await planned(wireOf(events))).chat
      const chunks = await listOf(await completions.create({ ...params, stream: true }))
      for (const chunk of chunks) expect(chunk).toMatchObject(head)
      const { input_tokens, output_tokens } = await lastRecord()
      expect(chunks.at(-1)!.usage).toMatchObject({ prompt_tokens: input_tokens, completion_tokens: output_tokens })
      const ends = chunks.flatMap(({ choices }) => choices.filter(choice => choice.finish_reason !== null))
      expect(ends.toSorted((a, b) => a.index - b.index).map(({ finish_reason: finish }) => finish as string)).toEqual([
        ...finishes,
      ])
      const final = await connect(await planned(wireOf(events)))
        .chat.completions.stream(params)
        .finalChatCompletion()
      expect(final.choices.map(choice => choice.finish_reason as string)).toEqual([...finishes])
      for (const { message } of final.choices) expect(message.role).toBe('assistant')
    }
  })

  test.each(cases)('a plain answer that ends %s', async (_name, events, finishes) => {
    const client = new OpenAI({ apiKey: await planned(wireOf(events)), baseURL: `${harness.url}/v1`, maxRetries: 0 })
    const reply = await client.chat.completions.create(paramsOf(finishes.length))
    const { input_tokens, output_tokens } = await lastRecord()
    expect(reply).toMatchObject({
      ...{ id: 'chatcmpl-up', created: 1, object: 'chat.completion', system_fingerprint: 'fp_up' },
      usage: { prompt_tokens: input_tokens, completion_tokens: output_tokens },
    })
    expect(reply.choices.map(({ index, finish_reason }) => [index, finish_reason as string])).toEqual(
      finishes.map((finish, at) => [at, finish]),
    )
    expect(reply.choices[0]!.message.content).toBe('Hi')
  })

  test('no client takes a cut call for a valid one', async () => {
    for (const more of [[], [call({ function: { arguments: '{"city":"Pa' } })]]) {
      const wire = wireOf([...hi, opened, ...more])
      const model = native('openai-chat')
      const [baseURL, name] = [`${harness.url}/v1`, 'weir']
      expect(await validCalls(wire, apiKey => createOpenAICompatible({ baseURL, name, apiKey })(model))).toEqual([])
      expect(await validCalls(wire, apiKey => createOpenAI({ baseURL, apiKey }).chat(model))).toEqual([])
      let runs = 0
      const run = {
        name: 'weather',
        parameters: citySchema,
        parse: JSON.parse,
        function: () => `run ${++runs}`,
        description: '',
      }
      const { completions } = new OpenAI({ apiKey: await planned(wire), baseURL, maxRetries: 0 }).chat
      const tools = [{ type: 'function', function: run }] as never
      const runner = completions.runTools({ model, messages: hello as never, tools, stream: true })
      await runner.done().catch(() => {})
      expect(runs).toBe(0)
    }
  })
})

describe('gemini', () => {
  const tail = { modelVersion: 'up', responseId: 'r_up', vendor: 'kept' }
  const piece = (parts: object[], index = 0, more: object = {}): Event => ({
    candidates: [{ content: { role: 'model', parts }, index, ...more }],
    ...tail,
  })
  const hi = piece([{ text: 'Hi' }])
  const cases: readonly (readonly [name: string, events: readonly Event[], finishes: readonly string[]])[] = [
    ['in a text', [hi], ['MAX_TOKENS']],
    ['in thoughts', [hi, piece([{ text: 'Well,', thought: true }])], ['MAX_TOKENS']],
    [
      'in the arguments of a call',
      [
        hi,
        piece([
          {
            functionCall: {
              name: 'weather',
              willContinue: true,
              partialArgs: [{ jsonPath: '$.city', stringValue: 'Pa', willContinue: true }],
            },
          },
        ]),
      ],
      ['MAX_TOKENS'],
    ],
    ['in one of two candidates', [hi, piece([{ text: 'Ho' }], 1, { finishReason: 'STOP' })], ['MAX_TOKENS', 'STOP']],
    ['in two candidates', [hi, piece([{ text: 'Ho' }], 1)], ['MAX_TOKENS', 'MAX_TOKENS']],
    ['before the second candidate', [hi], ['MAX_TOKENS', 'MAX_TOKENS']],
  ]
  const wireOf = (events: readonly Event[]): string => unnamed([...events, piece([{ text: TOO_MUCH }])])
  const connect = (apiKey: string) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: harness.url } }).models
  const paramsOf = (candidateCount: number) => ({ model: native('gemini'), contents: 'Hi', config: { candidateCount } })

  test.each(cases)('a stream that ends %s', async (_name, events, finishes) => {
    const models = connect(await planned(wireOf(events)))
    const chunks = await listOf(await models.generateContentStream(paramsOf(finishes.length)))
    const { input_tokens, output_tokens } = await lastRecord()
    expect(chunks.at(-1)).toMatchObject({
      ...{ modelVersion: 'up', responseId: 'r_up' },
      usageMetadata: { promptTokenCount: input_tokens, candidatesTokenCount: output_tokens },
    })
    const ends = chunks.flatMap(chunk => chunk.candidates ?? []).filter(one => one.finishReason !== undefined)
    expect(ends.map(({ index, finishReason }) => [index ?? 0, finishReason as string]).sort()).toEqual(
      finishes.map((finish, at) => [at, finish]),
    )
  })

  test.each(cases)('a plain answer that ends %s', async (_name, events, finishes) => {
    const reply = await connect(await planned(wireOf(events))).generateContent(paramsOf(finishes.length))
    const { input_tokens, output_tokens } = await lastRecord()
    expect(reply).toMatchObject({
      ...{ modelVersion: 'up', responseId: 'r_up' },
      usageMetadata: { promptTokenCount: input_tokens, candidatesTokenCount: output_tokens },
    })
    expect(reply.candidates!.map(one => one.finishReason as string)).toEqual([...finishes])
    expect(reply.functionCalls ?? []).toEqual([])
  })

  test('an answer is refused if the funds do not cover its first piece', async () => {
    for (const upstream of ['gemini', 'openai-chat', 'anthropic-messages', 'openai-responses'] as const) {
      const tooMuch: Readonly<Record<typeof upstream, string>> = {
        'gemini': wireOf([]),
        'openai-chat': unnamed([{ id: 'c', choices: [{ index: 0, delta: { content: TOO_MUCH } }] }]),
        'anthropic-messages': named([
          { type: 'content_block_start', index: 0, content_block: { type: 'text', text: TOO_MUCH } },
        ]),
        'openai-responses': named([{ type: 'response.output_text.delta', output_index: 0, delta: TOO_MUCH }]),
      }
      const models = connect(await planned(tooMuch[upstream]))
      const pending = models.generateContent({ ...paramsOf(1), model: modelOf(upstream, 'lorem') })
      await expect(pending).rejects.toMatchObject({ status: 402 })
      expect(await lastRecord(402)).toMatchObject({ rule: 'out_of_funds_withheld' })
    }
  })

  test('no client takes a cut call for a valid one', async () => {
    const model = native('gemini')
    const provider = (apiKey: string) => createGoogleGenerativeAI({ baseURL: `${harness.url}/v1beta`, apiKey })(model)
    expect(await validCalls(wireOf(cases[2]![1]), provider)).toEqual([])
  })
})

describe('translated', () => {
  /** A text, and a call that is cut after these arguments. */
  const wires = {
    'openai-chat': (args: string) => {
      const piece = (delta: object) => ({ id: 'c', choices: [{ index: 0, delta, finish_reason: null }] })
      const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: args } }
      return unnamed([piece({ content: 'Hi' }), piece({ tool_calls: [call] }), piece({ content: TOO_MUCH })])
    },
    'openai-responses': (args: string) => {
      const item = { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '' }
      const at = { item_id: 'fc_1', output_index: 1 }
      return named([
        { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hi' },
        { type: 'response.output_item.added', output_index: 1, item },
        { type: 'response.function_call_arguments.delta', ...at, delta: args },
        { type: 'response.function_call_arguments.delta', ...at, delta: TOO_MUCH },
      ])
    },
    'anthropic-messages': (args: string) => {
      const use = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }
      return named([
        { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', content: [] } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hi' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'content_block_start', index: 1, content_block: use },
        { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: args } },
        { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: TOO_MUCH } },
      ])
    },
    'gemini': (args: string) => {
      const piece = (part: object) => ({ candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }] })
      const partialArgs = args === '' ? [] : [{ jsonPath: '$.city', stringValue: 'Pa', willContinue: true }]
      const functionCall = { name: 'weather', willContinue: true, partialArgs }
      return unnamed([piece({ text: 'Hi' }), piece({ functionCall }), piece({ text: TOO_MUCH })])
    },
  } as const
  const upstreams = Object.keys(wires) as (keyof typeof wires)[]
  const models: Readonly<Record<keyof typeof wires, (key: string, model: string) => LanguageModel>> = {
    'openai-chat': (apiKey, model) =>
      createOpenAICompatible({ baseURL: `${harness.url}/v1`, name: 'weir', apiKey })(model),
    'openai-responses': (apiKey, model) => createOpenAI({ baseURL: `${harness.url}/v1`, apiKey }).responses(model),
    'anthropic-messages': (apiKey, model) => createAnthropic({ baseURL: `${harness.url}/v1`, apiKey })(model),
    'gemini': (apiKey, model) => createGoogleGenerativeAI({ baseURL: `${harness.url}/v1beta`, apiKey })(model),
  }
  const pairs = upstreams.flatMap(caller => upstreams.map(upstream => [caller, upstream] as const))

  test.each(pairs.filter(([caller, upstream]) => caller !== upstream))(
    'no client of %s takes a cut call of %s for a valid one',
    async (caller, upstream) => {
      for (const args of ['', '{"city":"Pa']) {
        expect(await validCalls(wires[upstream](args), key => models[caller](key, modelOf(upstream, 'lorem')))).toEqual(
          [],
        )
      }
    },
  )
})
