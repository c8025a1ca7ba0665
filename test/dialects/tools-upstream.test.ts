// Which tools of a request reach an upstream of another dialect.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Json } from '../../src/protocols/request/json-type.ts'
import type { Harness } from '../support/gateway.ts'
import { modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
const models = [
  { id: 'echo' },
  { id: 'both', traits: { serverToolsWithFunctions: true } },
  { id: 'one', traits: {} },
].map(model => ({
  ...model,
  contextTokens: 32_768,
  outputTokensMax: 4_096,
  price: { input: '1', output: '2', perSearch: '1' },
}))
beforeAll(async () => {
  harness = await startDialects({ models })
  key = await harness.key()
})
afterAll(() => harness.stop())

interface Sent {
  readonly status: number
  readonly losses: string | null
  readonly body: Json
}

async function post(path: string, body: object): Promise<Sent> {
  const answer = await fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  await answer.text()
  const sent = harness.upstream.requests.at(-1)!.json() as Json
  return { status: answer.status, losses: answer.headers.get('x-weir-loss'), body: sent }
}

const parameters = { type: 'object', properties: {} }
const functionTool = (name: string) => ({ type: 'function', name, parameters, strict: false })

test.each([
  ['openai-chat', { type: 'function', function: { name: 'b' } }],
  ['ark', { type: 'function', function: { name: 'b' } }],
  ['anthropic-messages', { type: 'tool', name: 'b' }],
] as const)('a forced tool leaves all tools declared at %s', async (upstream, choice) => {
  const call = { type: 'function_call', call_id: 'c', name: 'a', arguments: '{}' }
  const { status, losses, body } = await post('/v1/responses', {
    model: modelOf(upstream),
    input: [{ role: 'user', content: 'Hello' }, call, { type: 'function_call_output', call_id: 'c', output: 'x' }],
    tools: ['a', 'b'].map(functionTool),
    tool_choice: { type: 'function', name: 'b' },
    store: false,
  })
  const names = (body.tools as readonly Json[]).map(tool => ((tool.function ?? tool) as Json).name)
  expect([status, losses, names, body.tool_choice]).toEqual([200, null, ['a', 'b'], choice])
})

test.each(['openai-chat', 'ark', 'anthropic-messages'] as const)(
  'of several allowed tools, only those reach %s',
  async upstream => {
    const allowed = ['a', 'b'].map(name => ({ type: 'function', name }))
    const { status, body } = await post('/v1/responses', {
      model: modelOf(upstream),
      input: 'Hello',
      tools: ['a', 'b', 'c'].map(functionTool),
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: allowed },
      store: false,
    })
    const names = (body.tools as readonly Json[]).map(tool => ((tool.function ?? tool) as Json).name)
    expect([status, names]).toEqual([200, ['a', 'b']])
  },
)

test.each(['openai-chat', 'ark', 'anthropic-messages', 'gemini'] as const)(
  'a result that comes after another message is accepted by %s',
  async upstream => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
    const { status, body } = await post('/v1/responses', {
      model: modelOf(upstream),
      input: [
        { role: 'user', content: 'Hello' },
        call,
        { role: 'assistant', content: 'Wait.' },
        { role: 'user', content: 'Hurry' },
        { type: 'function_call_output', call_id: 'c', output: 'the result' },
      ],
      tools: [functionTool('f')],
      store: false,
    })
    expect([status, JSON.stringify(body).includes('the result')]).toEqual([200, true])
  },
)

test('a forced search is forced at Responses, and reported where it cannot be', async () => {
  const ask = (model: string) =>
    post('/v1/messages', {
      model,
      max_tokens: 99,
      messages: [{ role: 'user', content: 'Hello' }],
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'tool', name: 'web_search' },
    })
  const answers = await Promise.all(
    (['openai-responses', 'gemini', 'openai-chat'] as const).map(upstream => ask(modelOf(upstream))),
  )
  expect(answers.map(({ status, losses }) => [status, losses])).toEqual([
    [200, null],
    [200, 'tool_choice'],
    [200, 'web_search, tool_choice'],
  ])
})

test('a tool that is declared again is left out, and reported if it is another one', async () => {
  const chatTool = (description: string) => ({ type: 'function', function: { name: 'f', description, parameters } })
  const ask = async (...descriptions: readonly string[]) => {
    const { losses, body } = await post('/v1/chat/completions', {
      model: modelOf('anthropic-messages'),
      messages: [{ role: 'user', content: 'Hello' }],
      tools: descriptions.map(chatTool),
    })
    return [(body.tools as readonly Json[]).map(({ name, description }) => [name, description]), losses]
  }
  expect(await ask('a', 'a')).toEqual([[['f', 'a']], null])
  expect(await ask('a', 'b')).toEqual([[['f', 'a']], 'tools.repeated'])
})

const search = { type: 'web_search' }

test.each([
  ['without the search', [], { functions: ['a', 'b'], hasSearch: false }],
  ['with the search', [search], { functions: ['a', 'b'], hasSearch: true }],
] as const)('of allowed tools %s, those reach Anthropic', async (_name, more, expected) => {
  const allowed = ['a', 'b'].map(name => ({ type: 'function', name }))
  const { losses, body } = await post('/v1/responses', {
    model: modelOf('anthropic-messages'),
    input: 'Hello',
    tools: [...['a', 'b', 'c'].map(functionTool), search],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [...allowed, ...more] },
    store: false,
  })
  const tools = body.tools as readonly Json[]
  const functions = tools.flatMap(tool => (tool.type === undefined ? [tool.name] : []))
  expect<unknown>([losses, { functions, hasSearch: tools.length > functions.length }]).toEqual([null, expected])
})

test.each([
  ['anthropic-messages', 'tools'],
  ['openai-responses', 'tools'],
  ['openai-responses', 'tool_choice'],
] as const)('allowed functions of Gemini leave its search to %s (%s)', async (upstream, field) => {
  const { body } = await post(`/v1beta/models/${modelOf(upstream)}:generateContent`, {
    contents: [{ parts: [{ text: 'Hello' }] }],
    tools: [{ functionDeclarations: ['a', 'b', 'c'].map(name => ({ name })) }, { googleSearch: {} }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['a', 'b'] } },
  })
  expect(JSON.stringify(body[field])).toContain('web_search')
})

test('a search allows no function of Gemini if only the search is allowed', async () => {
  const { losses, body } = await post('/v1/responses', {
    model: modelOf('gemini', 'both'),
    input: 'Hello',
    tools: [functionTool('a'), search],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [search] },
    store: false,
  })
  expect([losses, body.tools, body.toolConfig]).toEqual([null, [{ googleSearch: {} }], undefined])
})

test('a function with the name of the search is called by its own name, and the search keeps the name', async () => {
  const { status, body } = await post('/v1/responses', {
    model: modelOf('anthropic-messages'),
    input: 'Hello',
    tools: [functionTool('web_search'), search],
    store: false,
  })
  const names = (body.tools as readonly Json[]).map(({ name }) => name)
  expect([status, names]).toEqual([200, ['web_search_2', 'web_search']])
})

const calls = [
  ['/v1/responses', { input: 'Hello', tools: [functionTool('f'), search], store: false }],
  [
    '/v1/messages',
    {
      messages: [{ role: 'user', content: 'Hello' }],
      max_tokens: 99,
      tools: [
        { type: 'web_search_20250305', name: 'web_search' },
        { name: 'f', input_schema: parameters },
      ],
    },
  ],
] as const

test.each(calls)(
  'a web search beside a function of %s reaches Gemini only if the model takes both',
  async (path, call) => {
    const both = await post(path, { ...call, model: modelOf('gemini', 'both') })
    const kinds = ({ tools }: Json) => (tools as readonly object[]).flatMap(tool => Object.keys(tool))
    expect([both.status, both.losses, kinds(both.body)]).toEqual([200, null, ['functionDeclarations', 'googleSearch']])
    expect(both.body.toolConfig).toMatchObject({ includeServerSideToolInvocations: true })
    const one = await post(path, { ...call, model: modelOf('gemini', 'one') })
    expect([one.status, one.losses, kinds(one.body)]).toEqual([200, 'web_search', ['functionDeclarations']])
    expect(one.body).not.toHaveProperty('toolConfig')
  },
)

test('a caller of Gemini itself is not changed', async () => {
  const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }]
  const given = { contents, tools: [{ functionDeclarations: [{ name: 'f' }] }, { googleSearch: {} }] }
  const { losses, body } = await post(`/v1beta/models/${modelOf('gemini', 'one')}:generateContent`, given)
  expect([losses, body]).toEqual([null, given])
})
