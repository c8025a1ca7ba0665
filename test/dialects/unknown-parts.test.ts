// A request that holds something of an unknown kind: what is known beside it is sent, and what the model is to answer
// is never nothing.

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

describe('a last word of an unknown kind', () => {
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

  test.each(pairs)('of %s is never sent to %s as nothing', async (caller, upstream) => {
    const field = fieldOf(caller)
    const key = await harness.key()
    const before = harness.upstream.requests.length
    for (const turns of [[unknown[field]], [...history[field], unknown[field]]]) {
      const asked = { model: modelOf(upstream), stream: false }
      const { path, body, error } = rawCallers[caller]
      const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
      const json = JSON.stringify({ ...body(asked), [field]: turns })
      const told = await fetch(harness.url + path(asked), { method: 'POST', headers, body: json })
      expect(told.status).toBe(400)
      expect(error(await told.json(), 400).message).toContain(field)
      expect(harness.upstream.requests).toHaveLength(before)
    }
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
  })

  test.each(pairs)('of %s beside what is known goes to %s without it, and says so', async (caller, upstream) => {
    if (caller === 'openai-chat' || caller === 'ark') return // refuse any kind that they do not know
    const field = fieldOf(caller)
    const asked = { model: modelOf(upstream), stream: false }
    const both = JSON.parse(JSON.stringify(history[field][0]!)) as Record<string, unknown>
    const list = field === 'contents' ? 'parts' : 'content'
    const text = field === 'input' ? { type: 'input_text', text: 'Hi' } : { type: 'text', text: 'Hi' }
    const known = field === 'contents' ? { text: 'Hi' } : text
    both[list] = [known, ...(unknown[field] as unknown as Record<string, unknown[]>)[list]!]
    const headers = { 'authorization': `Bearer ${await harness.key()}`, 'content-type': 'application/json' }
    const { path, body } = rawCallers[caller]
    const json = JSON.stringify({ ...body(asked), [field]: [both] })
    const told = await fetch(harness.url + path(asked), { method: 'POST', headers, body: json })
    expect([told.status, await told.text()]).toEqual([200, expect.any(String)])
    expect(told.headers.get('x-weir-loss')).toContain('hologram')
  })
})
