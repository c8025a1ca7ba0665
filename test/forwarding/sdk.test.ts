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

/** Both versions read the same calls in these tests; where their types differ, the newer one's are used. */
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

/** Counts the requests that reached the upstream and the calls that the SDK made while the function ran. */
async function counted(run: () => Promise<unknown>): Promise<{ upstream: number; calls: number }> {
  const before = [harness.upstream.requests.length, harness.recordCount()] as const
  await run()
  await until(() => harness.recordCount() > before[1], 'the call is recorded')
  return { upstream: harness.upstream.requests.length - before[0], calls: harness.recordCount() - before[1] }
}

describe.each(sdks)('openai %s', (version, Sdk) => {
  const client = (apiKey = key) => new Sdk({ apiKey, baseURL: `${harness.url}/v1` })

  test('has the version of its name', async () => {
    const agents: (string | null)[] = []
    const countingFetch: typeof globalThis.fetch = Object.assign(
      (url: Parameters<typeof fetch>[0], init?: RequestInit) => {
        agents.push(new Headers(init?.headers).get('user-agent'))
        return fetch(url, init)
      },
      { preconnect: fetch.preconnect },
    )
    const watching = new Sdk({ apiKey: key, baseURL: `${harness.url}/v1`, fetch: countingFetch })
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

  test('streams with usage if it asks for it', async () => {
    const request = { model, messages, stream: true as const, stream_options: { include_usage: true } }
    const usages = []
    for await (const part of await client().chat.completions.create(request)) if (part.usage) usages.push(part.usage)
    expect(usages).toMatchObject([{ prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 }])
  })

  test('streams through its helper', async () => {
    const pieces: string[] = []
    const stream = client().chat.completions.stream({ model, messages })
    stream.on('content', delta => pieces.push(delta))
    const final = await stream.finalChatCompletion()
    expect(final.choices[0]!.message.content).toBe('Hello, river')
    expect(final.choices[0]!.finish_reason).toBe('stop')
    expect(pieces.join('')).toBe('Hello, river')
  })

  test('calls tools', async () => {
    const request = { model, messages: [{ role: 'user' as const, content: 'use clock' }], tools }
    const plain = await client().chat.completions.create(request)
    expect(plain.choices[0]!.finish_reason).toBe('tool_calls')
    expect(plain.choices[0]!.message.tool_calls).toMatchObject([{ type: 'function', function: { name: 'clock' } }])
    harness.upstream.plan(toolCall({ name: 'clock', arguments: '{"zone":"UTC"}' }))
    const streamed = await client().chat.completions.stream(request).finalChatCompletion()
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
    const blocked = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['one', 'two'], blocked.promise))
    const received = harness.upstream.nextRequest()
    const stream = await client().chat.completions.create({ model, messages, stream: true })
    for await (const part of stream) if (part.choices[0]?.delta.content === 'one') stream.controller.abort()
    await (await received).closed
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left', status: 499 })
  })

  test('reads an error inside a stream', async () => {
    const pieces = Promise.withResolvers<void>()
    const opening = chunk(role() + piece('He'))
    harness.upstream.plan(
      script(streamHead, opening, gate(pieces.promise), chunk(errorEvent('The engine broke.')), end),
    )
    const stream = await client().chat.completions.create({ model, messages, stream: true })
    let text = ''
    const reading = async () => {
      for await (const part of stream) {
        text += part.choices[0]?.delta.content ?? ''
        if (text === 'He') pieces.resolve()
      }
    }
    const fault = await faultOf(reading())
    expect(text).toBe('He')
    expect(fault).toBeInstanceOf(Sdk.APIError)
    expect((fault as Error).message).toContain('The engine broke.')
  })

  describe('raises an error for', () => {
    type Row = readonly [name: string, status: number, error: keyof Sdk & `${string}Error`, run: () => Promise<unknown>]
    const create = (more: object = {}, apiKey?: string) =>
      client(apiKey).chat.completions.create({ model, messages, ...more })
    const callWithoutFunds = async () => create({}, await harness.key({ credit: '0.000001' }))
    const limited = async () => {
      const one = await harness.key({ qpm: 1 })
      await create({}, one)
      return client(one).chat.completions.create({ model, messages }, { maxRetries: 0 })
    }
    const refused = (status: number) => () => {
      harness.upstream.plan(fail(status))
      return client().chat.completions.create({ model, messages }, { maxRetries: 0 })
    }
    const rows: readonly Row[] = [
      ['a wrong key', 401, 'AuthenticationError', () => create({}, `wk-${'x'.repeat(36)}`)],
      ['an unknown model', 404, 'NotFoundError', () => create({ model: 'openai/nothing' })],
      ['an unknown provider', 404, 'NotFoundError', () => create({ model: 'nobody/nothing' })],
      ['no messages', 400, 'BadRequestError', () => create({ messages: [] })],
      ['a request that the upstream refuses', 400, 'BadRequestError', refused(400)],
      ['a large body', 413, 'APIError', () => create({ messages: [{ role: 'user', content: 'x'.repeat(300_000) }] })],
      ['no money', 402, 'APIError', callWithoutFunds],
      ['too many calls', 429, 'RateLimitError', limited],
      ['a broken upstream', 502, 'InternalServerError', refused(500)],
      ['a limit at the upstream', 503, 'InternalServerError', refused(429)],
    ]

    test.each(rows)('%s: %i %s', async (_name, status, error, run) => {
      const fault = await faultOf(run())
      expect(fault).toBeInstanceOf(Sdk[error] as new () => Error)
      const apiError = fault as InstanceType<Sdk['APIError']>
      expect(apiError.status).toBe(status)
      expect(apiError.requestID).toStartWith('req_')
      expect(apiError.message).not.toBe('')
      // The plain APIError stands for a status that has no class of its own.
      if (error === 'APIError') expect(apiError.constructor).toBe(Sdk.APIError)
    })

    test('a call that cannot succeed, and does not retry', async () => {
      const none = await harness.key({ credit: '0' })
      expect(await counted(() => faultOf(create({}, none)))).toEqual({ upstream: 0, calls: 1 })
      expect(await counted(() => faultOf(create({ model: 'openai/nothing' })))).toEqual({ upstream: 0, calls: 1 })
      harness.upstream.plan(fail(400))
      expect(await counted(() => faultOf(create()))).toEqual({ upstream: 1, calls: 1 })
    })

    test('a refused call with type, code and param', async () => {
      const keyError = (await faultOf(create({}, 'wk-no'))) as InstanceType<Sdk['APIError']>
      expect([keyError.type, keyError.code, keyError.param]).toEqual(['authentication_error', 'invalid_api_key', null])
      const modelError = (await faultOf(create({ model: 'nothing' }))) as InstanceType<Sdk['APIError']>
      expect([modelError.status, modelError.code, modelError.param]).toEqual([404, 'model_not_found', 'model'])
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
