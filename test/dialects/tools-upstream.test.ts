// Which tools of a request reach an upstream of another dialect.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Json } from '../../src/protocols/request/json-type.ts'
import type { Harness } from '../support/gateway.ts'
import { modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
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
