// Tests how much work one request can cause in the built-in provider, which runs on the thread of the gateway.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseProvider } from '../../src/upstreams/provider.ts'
import { expectCheap } from '../../test/support/cpu.ts'
import { modelIds, outputWordsMax } from './demo-models.ts'
import { rawClient } from './raw-client.ts'
import type { FakeUpstream } from './server.ts'
import { startFakeUpstream } from './server.ts'

interface Completion {
  readonly choices: readonly { readonly message: { readonly content: string }; readonly finish_reason: string }[]
  readonly usage: { readonly completion_tokens: number }
}

const bodyBytesMax = 1024 * 1024
let upstream: FakeUpstream
beforeEach(async () => {
  upstream = await startFakeUpstream({ keepRequests: 0, bodyBytesMax })
})
afterEach(() => upstream.stop())

const chat = (content: string, rest: object = {}) =>
  JSON.stringify({ model: 'echo', messages: [{ role: 'user', content }], ...rest })
const post = (body: string) => fetch(`${upstream.url}/v1/chat/completions`, { method: 'POST', body })
const complete = async (body: string) => (await (await post(body)).json()) as Completion

describe('the words of an answer', () => {
  test('have the maximum that providers/demo.json states', () => {
    const file = join(import.meta.dir, '..', '..', 'providers', 'demo.json')
    const bounds = [...parseProvider(readFileSync(file, 'utf8'), file).models.values()].map(
      model => model.outputTokensMax,
    )
    expect(bounds).toEqual(Array.from(modelIds, () => outputWordsMax))
  })

  test.each([
    { words: 4_096, rest: {}, expected: 4_096, finish: 'stop' },
    { words: 4_097, rest: {}, expected: 4_096, finish: 'length' },
    { words: 4_097, rest: { max_tokens: 1_000_000 }, expected: 4_096, finish: 'length' },
    { words: 4_097, rest: { max_tokens: 3 }, expected: 3, finish: 'length' },
  ])('are bounded: %j', async ({ words, rest, expected, finish }) => {
    const { choices, usage } = await complete(chat('w '.repeat(words).trimEnd(), rest))
    expect([usage.completion_tokens, choices[0]!.finish_reason]).toEqual([expected, finish])
    expect(choices[0]!.message.content).toBe('w '.repeat(expected).trimEnd())
  })

  test('are bounded in a stream', async () => {
    const text = await (await post(chat('w '.repeat(5_000), { stream: true }))).text()
    expect([text.split('"content":" w"').length, text.includes('"finish_reason":"length"')]).toEqual([4_096, true])
  })

  test('keep the white space after the last word', async () => {
    const { choices } = await complete(chat('one two \n', { max_tokens: 2 }))
    expect([choices[0]!.message.content, choices[0]!.finish_reason]).toEqual(['one two \n', 'stop'])
  })
})

test('a request may have at most eight choices', async () => {
  expect((await complete(chat('x', { n: 8 }))).choices.length).toBe(8)
  const refused = await post(chat('x', { n: 9 }))
  const message = "'n' must be an integer from 1 to 8."
  const error = { message, type: 'invalid_request_error', param: 'n', code: null }
  expect([refused.status, await refused.json()]).toEqual([400, { error }])
})

test('a request with many tools and many words that name no tool is answered quickly', async () => {
  const tools = Array.from({ length: 15_000 }, () => ({ function: { name: 'b' } }))
  await expectCheap(2_000, async () => {
    expect((await post(chat('use a '.repeat(60_000), { tools }))).status).toBe(200)
  })
})

describe('a request body', () => {
  const padded = (bytes: number) => chat('x').padEnd(bytes)
  const tooLarge = {
    error: {
      message: 'fake upstream: the request body is too large',
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
  }

  test('of the maximum size is accepted', async () => {
    expect((await post(padded(bodyBytesMax))).status).toBe(200)
  })

  test('beyond the maximum size is refused with an OpenAI error, and the socket is closed', async () => {
    for (const bytes of [bodyBytesMax + 1, 30 * 1024 * 1024]) {
      const refused = await post(padded(bytes))
      expect([refused.status, refused.headers.get('connection')]).toEqual([413, 'close'])
      expect(await refused.json()).toEqual(tooLarge)
    }
  })

  test('in chunks beyond the maximum size is refused', async () => {
    const client = await rawClient(upstream.url)
    client.send('POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n')
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    for (let sent = 0; sent <= 17; sent++) client.send(chunk)
    expect(await client.ending).toBe('FIN')
    expect(client.received).toStartWith('HTTP/1.1 413 ')
    expect(JSON.parse(client.received.slice(client.received.indexOf('\r\n\r\n')))).toEqual(tooLarge)
    client.close()
  })
})
