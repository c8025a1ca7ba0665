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

const search = { type: 'web_search' }
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
