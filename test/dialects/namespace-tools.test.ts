// Tools in namespaces, as Codex sends each MCP server, reach upstreams whose dialects have no namespaces. Calls come back
// with the namespace and the name, which is how Codex finds the tool.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { answer, jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let openai: OpenAI
beforeAll(async () => {
  harness = await startDialects()
  openai = new OpenAI({ apiKey: await harness.key(), baseURL: `${harness.url}/v1`, maxRetries: 0 })
})
afterAll(() => harness.stop())

type Params = OpenAI.Responses.ResponseCreateParamsNonStreaming
type Item = OpenAI.Responses.ResponseInputItem

const parameters = { type: 'object', properties: { q: { type: 'string' } } }
const search = { type: 'function', name: 'search', description: 'Searches.', parameters, strict: false } as const
const note = { type: 'custom', name: 'note', description: 'Takes a note.' } as const
const long = 'find_everything_about_the_weather_of_tomorrow'

const tools: OpenAI.Responses.Tool[] = [
  { ...search, description: 'Searches the folder.' },
  { type: 'namespace', name: 'mcp__github', description: 'Issues and code.', tools: [search, note] },
  { type: 'namespace', name: 'mcp__docs', description: 'Pages.', tools: [search, note] },
  { type: 'namespace', name: `mcp__${'forecast'.repeat(5)}`, description: '', tools: [{ ...search, name: long }] },
]

const upstreams: readonly Dialect[] = ['openai-chat', 'anthropic-messages', 'gemini', 'ark']

type Sent = Readonly<Record<string, unknown>>
const sent = (): Sent => JSON.parse(harness.upstream.requests.at(-1)!.body.toString()) as Sent
const lastLoss = async (): Promise<unknown> => {
  await harness.idle()
  return harness.lastRecord()!.loss
}

interface Declaration {
  readonly name: string
  readonly description?: string
}

/** The tools of the last request that an upstream received. */
function declared(): readonly Declaration[] {
  const list = sent().tools as readonly Readonly<Record<string, unknown>>[]
  return list.flatMap(tool => {
    const inner = tool.functionDeclarations ?? tool.function ?? tool.custom ?? tool
    return inner as Declaration | Declaration[]
  })
}

const ways = ['plain', 'stream'] as const

async function ask(way: (typeof ways)[number], params: Params): Promise<OpenAI.Responses.Response> {
  if (way === 'plain') return openai.responses.create(params)
  return openai.responses.stream({ ...params, stream: true }).finalResponse()
}

interface Call {
  readonly type: string
  readonly namespace?: string
  readonly name: string
  readonly text: string
}

const callsOf = (items: readonly { readonly type: string }[]): readonly Call[] =>
  (items as readonly OpenAI.Responses.ResponseOutputItem[]).flatMap(item => {
    if (item.type !== 'function_call' && item.type !== 'custom_tool_call') return []
    const { type, namespace, name } = item
    return {
      type,
      ...(namespace !== undefined && { namespace }),
      name,
      text: 'input' in item ? item.input : item.arguments,
    }
  })

/** OpenAI's chat is the only other dialect with custom tools. */
function customCall(name: string, input: string): Script {
  const message = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'custom', custom: { name, input } }],
  }
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const choices = [{ index: 0, message, finish_reason: 'tool_calls' }]
  const completion = { id: 'x', object: 'chat.completion', created: 1, model: 'echo', choices, usage }
  return script(...jsonAnswer(200, JSON.stringify(completion)))
}

describe.each(upstreams.flatMap(upstream => ways.map(way => [upstream, way] as const)))('%s, %s', (upstream, way) => {
  const model = modelOf(upstream)

  test('has the tools of all namespaces under names of their own', async () => {
    await ask(way, { model, input: 'Hello', tools, store: false })
    const names = declared().map(({ name }) => name)
    expect(names.slice(0, 5)).toEqual([
      'search',
      'mcp__github__search',
      'mcp__github__note',
      'mcp__docs__search',
      'mcp__docs__note',
    ])
    expect(names[5]).toMatch(/^mcp__forecastforecastfor_[a-z_]+the_weather_of_tomorrow_[0-9a-f]{8}$/)
    expect(names[5]!.length).toBeLessThanOrEqual(64)
    expect(declared().map(({ description }) => description)).toEqual([
      'Searches the folder.',
      'Searches.\n\nAll tools of mcp__github: Issues and code.',
      'Takes a note.',
      'Searches.\n\nAll tools of mcp__docs: Pages.',
      'Takes a note.',
      'Searches.',
    ])
    expect(await lastLoss()).toBeNull()
  })

  test('calls tools with their namespaces, and gets the results in the next turn', async () => {
    const use = ['search', 'mcp__github__search', 'mcp__docs__search'].map((name, at) => `use ${name} {"q":"${at}"}`)
    const first: Item[] = [{ role: 'user', content: use.join(', ') }]
    const reply = await ask(way, { model, input: first, tools, store: false })
    expect(callsOf(reply.output)).toEqual([
      { type: 'function_call', name: 'search', text: '{"q":"0"}' },
      { type: 'function_call', namespace: 'mcp__github', name: 'search', text: '{"q":"1"}' },
      { type: 'function_call', namespace: 'mcp__docs', name: 'search', text: '{"q":"2"}' },
    ])
    const before = declared()
    const calls = reply.output.filter(item => item.type === 'function_call')
    const results = calls.map(
      ({ call_id }, at): Item => ({ type: 'function_call_output', call_id, output: `found ${at}` }),
    )
    const next = await ask(way, {
      model,
      input: [...first, ...(reply.output as Item[]), ...results],
      tools,
      store: false,
    })
    expect([next.status, await lastLoss()]).toEqual(['completed', null])
    expect(declared()).toEqual(before)
    const { tools: _tools, ...request } = sent()
    const named = JSON.stringify(request).matchAll(/"name":"((?:mcp__\w+__)?search)"/g)
    const inCalls = ['search', 'mcp__github__search', 'mcp__docs__search']
    // Google wants the name with the result as well.
    expect(Array.from(named, ([, name]) => name)).toEqual(upstream === 'gemini' ? [...inCalls, ...inCalls] : inCalls)
  })

  test('calls custom tools with their namespaces', async () => {
    const name = 'mcp__docs__note'
    const asFunction = answer('', { toolCall: { name, arguments: '{"input":"free text"}' } })
    harness.upstream.plan(upstream === 'openai-chat' ? customCall(name, 'free text') : asFunction)
    const reply = await ask(way, { model, input: 'Hello', tools, store: false })
    expect(callsOf(reply.output)).toEqual([
      { type: 'custom_tool_call', namespace: 'mcp__docs', name: 'note', text: 'free text' },
    ])
    const [call] = reply.output.filter(item => item.type === 'custom_tool_call')
    const output: Item = { type: 'custom_tool_call_output', call_id: call!.call_id, output: 'noted' }
    const input: Item[] = [{ role: 'user', content: 'Hello' }, ...(reply.output as Item[]), output]
    await ask(way, { model, input, tools, store: false })
    const { tools: _tools, ...request } = sent()
    expect(JSON.stringify(request)).toContain(name)
  })

  test('has the same names after a stored response', async () => {
    const reply = await ask(way, { model, input: 'use mcp__docs__search {"q":"a"}', tools })
    const [call] = reply.output.filter(item => item.type === 'function_call')
    expect(call).toMatchObject({ namespace: 'mcp__docs', name: 'search' })
    const output: Item = { type: 'function_call_output', call_id: call!.call_id, output: 'found' }
    const next = await ask(way, { model, input: [output], previous_response_id: reply.id, tools })
    expect([next.status, await lastLoss()]).toEqual(['completed', null])
    const { tools: _tools, ...request } = sent()
    expect(JSON.stringify(request)).toContain('"mcp__docs__search"')
  })

  test('must call a chosen tool of a namespace', async () => {
    const choice = { type: 'function', namespace: 'mcp__docs', name: 'search' } as const
    const reply = await ask(way, { model, input: 'Hello', tools, tool_choice: choice, store: false })
    const { tools: _tools, ...request } = sent()
    expect(JSON.stringify(request)).toContain('"mcp__docs__search"')
    expect(callsOf(reply.output).map(({ namespace, name }) => [namespace, name])).toContainEqual([
      'mcp__docs',
      'search',
    ])
    expect(await lastLoss()).toBeNull()
  })
})

test('streamed events name the namespace from the first event of a call to the last', async () => {
  const model = modelOf('openai-chat')
  const stream = await openai.responses.create({
    model,
    input: 'use mcp__docs__search',
    tools,
    store: false,
    stream: true,
  })
  const seen: (readonly [string, object])[] = []
  for await (const event of stream) {
    if ('item' in event) seen.push([event.type, event.item])
    if (event.type === 'response.function_call_arguments.done') seen.push([event.type, event])
  }
  const tool = { namespace: 'mcp__docs', name: 'search' }
  expect(seen).toMatchObject([
    ['response.output_item.added', tool],
    ['response.function_call_arguments.done', { name: 'search' }],
    ['response.output_item.done', tool],
  ])
})

describe('an upstream of the same dialect', () => {
  const model = modelOf('openai-responses')
  const item = {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'c1',
    namespace: 'mcp__docs',
    name: 'search',
    arguments: '{}',
  }
  const whole = { id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'echo', output: [item] }
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }

  test('gets namespaces unchanged', async () => {
    await openai.responses.create({ model, input: 'Hello', tools, store: false })
    const { body } = harness.upstream.requests.at(-1)!
    expect(body.toString()).toContain(`"tools":${JSON.stringify(tools)}`)
  })

  test('may answer a stream with a plain body', async () => {
    const text = JSON.stringify({ ...whole, usage })
    harness.upstream.plan(script(...jsonAnswer(200, text)))
    const reply = await openai.responses.stream({ model, input: 'Hello', tools, store: false }).finalResponse()
    expect(callsOf(reply.output)).toEqual([
      { type: 'function_call', namespace: 'mcp__docs', name: 'search', text: '{}' },
    ])
  })
})
