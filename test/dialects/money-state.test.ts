// Reasoning state that the gateway keeps is for one account only. Forged state reaches only the upstream that it names,
// which checks it itself.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readUsage } from '../../src/protocols/anthropic-messages/usage.ts'
import { packReasoningState } from '../../src/protocols/neutral/reasoning-state.ts'
import { answer } from '../../tools/fake-upstream/answers.ts'
import type { Harness } from '../support/gateway.ts'
import { requestIn, send } from './money-calls.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startDialects()
})
afterAll(() => harness.stop())

const tools = [{ type: 'function', function: { name: 'map', parameters: { type: 'object', properties: {} } } }]
const sent = (): string => Buffer.from(harness.upstream.requests.at(-1)!.body).toString()

/** Gets a tool call with reasoning state, and sends its result with a second key. */
async function turns(first: string, second: string, upstream: 'anthropic-messages' | 'gemini'): Promise<string> {
  const [model, question] = [modelOf(upstream), { role: 'user', content: 'Hi' }]
  const state = Buffer.from(`state-of-${upstream}`).toString('base64')
  harness.upstream.plan(answer('', { reasoning: { text: 'Hm', state }, toolCall: { name: 'map', arguments: '{}' } }))
  const more = { tools, reasoning_effort: 'high' }
  const request = requestIn('openai-chat', { model, more: { ...more, messages: [question] } })
  const { choices } = (await (await send(harness, first, request)).json()) as { choices: { message: Message }[] }
  const { content, tool_calls: calls } = choices[0]!.message
  const bare = calls.map(({ id, type, function: f }) => ({ id, type, function: f }))
  const stripped = { role: 'assistant', content, tool_calls: bare }
  const result = { role: 'tool', tool_call_id: calls[0]!.id, content: 'sunny' }
  harness.upstream.plan(answer('Done'))
  const next = requestIn('openai-chat', { model, more: { ...more, messages: [question, stripped, result] } })
  expect((await send(harness, second, next)).status).toBe(200)
  return sent().includes(state) ? 'came back' : 'did not'
}

interface Message {
  readonly content: unknown
  readonly tool_calls: readonly { readonly id: string; readonly type: string; readonly function: object }[]
}

test.each(['anthropic-messages', 'gemini'] as const)(
  '%s: kept reasoning state is sent back for its own account only',
  async upstream => {
    const [alice, bob] = [await harness.key(), await harness.key()]
    expect(await turns(alice, alice, upstream)).toBe('came back')
    expect(await turns(alice, bob, upstream)).toBe('did not')
  },
)

const forge = (origin: string, value: string): string => packReasoningState({ form: 'encrypted', value, origin })

test.each(dialects)('forged state of another origin does not reach %s', async upstream => {
  const key = await harness.key()
  for (const value of ['forged', 'x'.repeat(1_000_000)]) {
    const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: forge('AAAAAAAAAAAA', value) }
    const input = [{ role: 'user', content: 'Hi' }, item, { role: 'user', content: 'Well?' }]
    const request = requestIn('openai-responses', { model: modelOf(upstream), more: { input } })
    const response = await send(harness, key, request)
    expect([response.status, sent().includes(value), sent().includes('d2VpcjF7')]).toEqual([200, false, false])
  }
})

test('a later usage report without the output tokens keeps the earlier count', () => {
  const earlier = { input: 10, output: 7 }
  expect(readUsage({ input_tokens: 10 }, earlier)).toEqual(earlier)
  expect(readUsage({ cache_read_input_tokens: 4 }, earlier)).toEqual({ ...earlier, cacheRead: 4 })
})
