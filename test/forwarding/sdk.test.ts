// The official SDK, unmodified but for its base URL and key, in the two major versions that callers use.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { fail, pausedStream, silence, streamHead, toolCall } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { startHasty } from './caller.ts'
import { errorEvent, piece, role } from './wire.ts'

type Sdk = typeof OpenAI

/** Both read the same calls in these tests; where their types differ, the newer one's are used. */
const sdks: readonly (readonly [string, Sdk])[] = [
  ['7.x', OpenAI],
  ['6.x', OpenAI6 as unknown as Sdk],
]

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startHasty({ world: { bodyBounds: { bytesMax: 200_000, msMax: 5_000 } } })
  key = await harness.key()
})
afterAll(() => harness.stop())

const model = 'openai/gpt-4o-mini'
const messages = [{ role: 'user' as const, content: 'Hello, river' }]
const clock = { name: 'clock', parameters: { type: 'object', properties: {} } }
const tools = [{ type: 'function' as const, function: clock }]

/** How many requests reached the upstream while this ran, and how many times the SDK called us. */
async function counted(run: () => Promise<unknown>): Promise<{ upstream: number; calls: number }> {
  const before = [harness.upstream.requests.length, harness.records().length] as const
  await run()
  await until(() => harness.records().length > before[1], 'the call is recorded')
  return { upstream: harness.upstream.requests.length - before[0], calls: harness.records().length - before[1] }
}

describe.each(sdks)('openai %s', (version, Sdk) => {
  const client = (apiKey = key) => new Sdk({ apiKey, baseURL: `${harness.url}/v1` })

  test('is the version that it says', async () => {
    const agents: (string | null)[] = []
    const watched: typeof globalThis.fetch = Object.assign(
      (url: Parameters<typeof fetch>[0], init?: RequestInit) => {
        agents.push(new Headers(init?.headers).get('user-agent'))
        return fetch(url, init)
      },
      { preconnect: fetch.preconnect },
    )
    const watching = new Sdk({ apiKey: key, baseURL: `${harness.url}/v1`, fetch: watched })
    await watching.chat.completions.create({ model, messages })
    expect(agents).toEqual([expect.stringMatching(new RegExp(`^OpenAI/JS ${version[0]}\\.`))])
  })

  test('chats', async () => {
    const {
      data,
      response,
      request_id: requestId,
    } = await client().chat.completions.create({ model, messages }).withResponse()
    expect(data.choices[0]!.message.content).toBe('Hello, river')
    expect(data.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 2 })
    expect(requestId).toStartWith('req_')
    expect(data).toHaveProperty('_request_id', requestId)
    expect(response.headers.get('x-pipeline-adapter')).toMatch(/^done \(\d+ms\)$/)
  })

  test('streams', async () => {
    let text = ''
    let usage: unknown
    for await (const part of await client().chat.completions.create({ model, messages, stream: true })) {
      expect(Array.isArray(part.choices)).toBe(true)
      text += part.choices[0]?.delta.content ?? ''
      usage = part.usage ?? usage
    }
    expect(text).toBe('Hello, river')
    expect(usage).toBeUndefined()
  })

  test('streams with usage when asked', async () => {
    const asked = { model, messages, stream: true as const, stream_options: { include_usage: true } }
    const usages = []
    for await (const part of await client().chat.completions.create(asked)) if (part.usage) usages.push(part.usage)
    expect(usages).toMatchObject([{ prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 }])
  })

  test('streams through its helper', async () => {
    const seen: string[] = []
    const stream = client().chat.completions.stream({ model, messages })
    stream.on('content', delta => seen.push(delta))
    const final = await stream.finalChatCompletion()
    expect(final.choices[0]!.message.content).toBe('Hello, river')
    expect(final.choices[0]!.finish_reason).toBe('stop')
    expect(seen.join('')).toBe('Hello, river')
  })

  test('calls tools', async () => {
    const asked = { model, messages: [{ role: 'user' as const, content: 'use clock' }], tools }
    const plain = await client().chat.completions.create(asked)
    expect(plain.choices[0]!.finish_reason).toBe('tool_calls')
    expect(plain.choices[0]!.message.tool_calls).toMatchObject([{ type: 'function', function: { name: 'clock' } }])
    harness.upstream.plan(toolCall({ name: 'clock', arguments: '{"zone":"UTC"}' }))
    const streamed = await client().chat.completions.stream(asked).finalChatCompletion()
    expect(streamed.choices[0]!.message.tool_calls).toMatchObject([
      { type: 'function', function: { name: 'clock', arguments: '{"zone":"UTC"}' } },
    ])
  })

  test('aborts a plain call', async () => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const controller = new AbortController()
    const call = client().chat.completions.create({ model, messages }, { signal: controller.signal })
    const request = await received
    controller.abort()
    expect(await faultOf(call)).toBeInstanceOf(Sdk.APIUserAbortError)
    await request.closed
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
  })

  test('aborts a stream', async () => {
    const never = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['one', 'two'], never.promise))
    const received = harness.upstream.nextRequest()
    const stream = await client().chat.completions.create({ model, messages, stream: true })
    for await (const part of stream) if (part.choices[0]?.delta.content === 'one') stream.controller.abort()
    await (await received).closed
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.records().at(-1)).toMatchObject({ outcome: 'client_left', status: 499 })
  })

  test('reads an error inside a stream', async () => {
    const seen = Promise.withResolvers<void>()
    const begin = chunk(role() + piece('He'))
    harness.upstream.plan(script(streamHead, begin, gate(seen.promise), chunk(errorEvent('The engine broke.')), end))
    const stream = await client().chat.completions.create({ model, messages, stream: true })
    let text = ''
    const reading = async () => {
      for await (const part of stream) {
        text += part.choices[0]?.delta.content ?? ''
        if (text === 'He') seen.resolve()
      }
    }
    const fault = await faultOf(reading())
    expect(text).toBe('He')
    expect(fault).toBeInstanceOf(Sdk.APIError)
    expect((fault as Error).message).toContain('The engine broke.')
  })

  describe('raises', () => {
    type Row = readonly [name: string, status: number, error: keyof Sdk & `${string}Error`, run: () => Promise<unknown>]
    const ask = (more: object = {}, apiKey?: string) =>
      client(apiKey).chat.completions.create({ model, messages, ...more })
    const poor = async () => ask({}, await harness.key({ credit: '0.000001' }))
    const limited = async () => {
      const one = await harness.key({ qpm: 1 })
      await ask({}, one)
      return client(one).chat.completions.create({ model, messages }, { maxRetries: 0 })
    }
    const refused = (status: number) => () => {
      harness.upstream.plan(fail(status))
      return client().chat.completions.create({ model, messages }, { maxRetries: 0 })
    }
    const rows: readonly Row[] = [
      ['a wrong key', 401, 'AuthenticationError', () => ask({}, `wk-${'x'.repeat(36)}`)],
      ['no such model', 404, 'NotFoundError', () => ask({ model: 'openai/nothing' })],
      ['no such provider', 404, 'NotFoundError', () => ask({ model: 'nobody/nothing' })],
      ['no messages', 400, 'BadRequestError', () => ask({ messages: [] })],
      ['a request that the upstream refuses', 400, 'BadRequestError', refused(400)],
      ['a large body', 413, 'APIError', () => ask({ messages: [{ role: 'user', content: 'x'.repeat(300_000) }] })],
      ['no money', 402, 'APIError', poor],
      ['too many calls', 429, 'RateLimitError', limited],
      ['a broken upstream', 502, 'InternalServerError', refused(500)],
      ['a limit at the upstream', 503, 'InternalServerError', refused(429)],
    ]

    test.each(rows)('%s: %i %s', async (_name, status, error, run) => {
      const fault = await faultOf(run())
      expect(fault).toBeInstanceOf(Sdk[error] as new () => Error)
      const told = fault as InstanceType<Sdk['APIError']>
      expect(told.status).toBe(status)
      expect(told.requestID).toStartWith('req_')
      expect(told.message).not.toBe('')
      // The plain APIError stands for a status that has no class of its own.
      if (error === 'APIError') expect(told.constructor).toBe(Sdk.APIError)
    })

    test('and does not retry what cannot succeed', async () => {
      const none = await harness.key({ credit: '0' })
      expect(await counted(() => faultOf(ask({}, none)))).toEqual({ upstream: 0, calls: 1 })
      expect(await counted(() => faultOf(ask({ model: 'openai/nothing' })))).toEqual({ upstream: 0, calls: 1 })
      harness.upstream.plan(fail(400))
      expect(await counted(() => faultOf(ask()))).toEqual({ upstream: 1, calls: 1 })
    })

    test('and tells type, code and param', async () => {
      const told = (await faultOf(ask({}, 'wk-no'))) as InstanceType<Sdk['APIError']>
      expect([told.type, told.code, told.param]).toEqual(['authentication_error', 'invalid_api_key', null])
      const other = (await faultOf(ask({ model: 'nothing' }))) as InstanceType<Sdk['APIError']>
      expect([other.status, other.code, other.param]).toEqual([404, 'model_not_found', 'model'])
    })
  })
})

async function faultOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
  } catch (fault) {
    return fault
  }
  throw new Error('nothing was raised')
}
