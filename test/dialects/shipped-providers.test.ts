// Translated calls to models of the shipped provider files: the provider's own rules on fields.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startHarness({
    env: { GEMINI_API_KEY: 'sk' },
    upstreamEnv: url => ({
      GEMINI_BASE_URL: `${url}/v1beta`,
    }),
  })
  key = await harness.key()
})
afterAll(() => harness.stop())

type Json = Record<string, unknown>

interface Outcome {
  readonly status: number
  readonly losses: readonly string[]
  /** The path of the request that the upstream got, and its body; undefined if it got none. */
  readonly path: string | undefined
  readonly sent: Json
  readonly answer: Json
}

async function ask(path: string, body: Json, headers: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const before = harness.upstream.requests.length
  const response = await fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as Json
  const request = harness.upstream.requests[before]
  const losses = (response.headers.get('x-weir-loss') ?? '').split(', ').filter(code => code !== '')
  const sent = JSON.parse(String(Buffer.from(request?.body ?? '{}'))) as Json
  return { status: response.status, losses, path: request?.path, sent, answer }
}

const messages = [{ role: 'user', content: 'hi' }]

describe('a penalty', () => {
  const ark = (model: string, penalty: number): Promise<Outcome> =>
    ask('/api/v3/chat/completions', { model, messages, frequency_penalty: penalty, presence_penalty: penalty })
  const lost = ['frequency_penalty', 'presence_penalty']

  test.each(['google/gemini-2.5-flash', 'google/gemini-3.1-pro-preview'])('is left out for %s', async model => {
    const { status, sent, losses } = await ark(model, 0.5)
    expect([status, losses.toSorted(), sent.generationConfig]).toEqual([200, lost, undefined])
    expect((await ark(model, 0)).losses).toEqual([])
  })

  test('reaches Gemini 2.0', async () => {
    const { sent, losses } = await ark('google/gemini-2.0-flash', 0.5)
    expect([sent.generationConfig, losses]).toEqual([{ frequencyPenalty: 0.5, presencePenalty: 0.5 }, []])
  })
})
