// An instruction in the middle of a conversation never reaches a model as plain words of the user.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key()
})
afterAll(() => harness.stop())

const turns = (role: string) => [
  { role: 'user', content: 'Hello' },
  { role: 'assistant', content: 'Hi' },
  { role, content: 'be-brief' },
  { role: 'user', content: 'Why?' },
]

const callers: readonly (readonly [Dialect, path: string, role: string, body: object])[] = [
  ['openai-chat', '/v1/chat/completions', 'system', { messages: turns('system') }],
  ['openai-chat', '/v1/chat/completions', 'developer', { messages: turns('developer') }],
  ['openai-responses', '/v1/responses', 'developer', { input: turns('developer') }],
  ['anthropic-messages', '/v1/messages', 'system', { messages: turns('system'), max_tokens: 99 }],
]

/** How each dialect writes it: the dialects without the role mark the text. */
const written: Readonly<Record<Dialect, RegExp>> = {
  'openai-chat': /"role":"system","content":"be-brief"/,
  'openai-responses': /"role":"(?:system|developer)","content":\[\{"type":"input_text","text":"be-brief"\}\]/,
  'anthropic-messages': /"text":"<system>\\nbe-brief\\n<\/system>"/,
  'gemini': /"text":"<system>\\nbe-brief\\n<\/system>"/,
  'ark': /"role":"system","content":"be-brief"/,
}

test.each(callers)('of %s (%s, %s)', async (caller, path, _role, body) => {
  for (const upstream of dialects.filter(dialect => dialect !== caller)) {
    const answer = await fetch(harness.url + path, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, model: modelOf(upstream) }),
    })
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
    // The text and its position are kept, so that nothing is lost.
    expect(answer.headers.get('x-weir-loss')).toBeNull()
    expect(harness.upstream.requests.at(-1)!.body.toString()).toMatch(written[upstream])
  }
})
