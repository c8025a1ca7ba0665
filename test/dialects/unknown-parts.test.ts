// Requests with a part of an unknown type: the known parts beside it are sent, and a request without any known part in its
// last message is refused.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { rawCallers } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startDialects({ env: { WEIR_DRAIN_SECONDS: '0' } })
})
afterAll(() => harness.stop())

describe('a last message of an unknown type', () => {
  const history = {
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: 'Ho' },
    ],
    input: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Ho' },
    ],
    contents: [
      { role: 'user', parts: [{ text: 'Hi' }] },
      { role: 'model', parts: [{ text: 'Ho' }] },
    ],
  }
  const unknown = {
    messages: { role: 'user', content: [{ type: 'hologram', hologram: { url: 'https://x.test/h' } }] },
    input: { role: 'user', content: [{ type: 'input_hologram', url: 'https://x.test/h' }] },
    contents: { role: 'user', parts: [{ hologram: { url: 'https://x.test/h' } }] },
  }
  const fieldOf = (caller: Dialect): keyof typeof history =>
    caller === 'gemini' ? 'contents' : caller === 'openai-responses' ? 'input' : 'messages'
  const pairs = dialects.flatMap(caller =>
    dialects.filter(upstream => upstream !== caller).map(upstream => [caller, upstream] as const),
  )

  test.each(pairs)('from %s is not sent to %s as an empty message', async (caller, upstream) => {
    const field = fieldOf(caller)
    const key = await harness.key()
    const before = harness.upstream.requests.length
    for (const turns of [[unknown[field]], [...history[field], unknown[field]]]) {
      const input = { model: modelOf(upstream), stream: false }
      const { path, body, error } = rawCallers[caller]
      const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
      const json = JSON.stringify({ ...body(input), [field]: turns })
      const answer = await fetch(harness.url + path(input), { method: 'POST', headers, body: json })
      expect(answer.status).toBe(400)
      expect(error(await answer.json(), 400).message).toContain(field)
      expect(harness.upstream.requests).toHaveLength(before)
    }
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
  })

  /** Sends a message with a known part and one of an unknown type. */
  async function sendBoth(caller: Dialect, upstream: Dialect): Promise<Response> {
    const field = fieldOf(caller)
    const input = { model: modelOf(upstream), stream: false }
    const both = JSON.parse(JSON.stringify(history[field][0]!)) as Record<string, unknown>
    const list = field === 'contents' ? 'parts' : 'content'
    const text = field === 'input' ? { type: 'input_text', text: 'Hi' } : { type: 'text', text: 'Hi' }
    const known = field === 'contents' ? { text: 'Hi' } : text
    both[list] = [known, ...(unknown[field] as unknown as Record<string, unknown[]>)[list]!]
    const headers = { 'authorization': `Bearer ${await harness.key()}`, 'content-type': 'application/json' }
    const { path, body } = rawCallers[caller]
    const json = JSON.stringify({ ...body(input), [field]: [both] })
    return fetch(harness.url + path(input), { method: 'POST', headers, body: json })
  }

  // These dialects refuse parts of an unknown type, also beside known parts.
  const refuses = (caller: Dialect): boolean => caller === 'openai-chat' || caller === 'ark'

  test.each(pairs.filter(([caller]) => !refuses(caller)))(
    'from %s with known parts goes to %s without the unknown part, and reports the loss',
    async (caller, upstream) => {
      const answer = await sendBoth(caller, upstream)
      expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
      expect(answer.headers.get('x-weir-loss')).toContain('hologram')
    },
  )

  test.each(pairs.filter(([caller]) => refuses(caller)))(
    'from %s with known parts is refused and not sent to %s',
    async (caller, upstream) => {
      const before = harness.upstream.requests.length
      const answer = await sendBoth(caller, upstream)
      expect(answer.status).toBe(400)
      expect(rawCallers[caller].error(await answer.json(), 400).message).toContain('messages[0].content[1]')
      expect(harness.upstream.requests).toHaveLength(before)
    },
  )
})
